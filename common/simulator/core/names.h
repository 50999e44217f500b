// What things are called in messages and reports.
#pragma once

#include <cstdint>
#include <string>

#include "core/hazard_kind.h"
#include "core/op.h"

namespace warpsim {

struct Program;

const char *class_name(OpClass);      // "fp32", "load_shared": the report's "by_class"
const char *hazard_name(HazardKind);  // "shared_race": the report's "kind"

// The report's name for what an op does to shared or global memory: "load", "cp_async", ...; null for other ops.
const char *access_kind(OpClass);

// Of OpClass::bulk_copy and tensor_copy: "bulk copy", "TMA copy".
const char *copy_noun(OpClass);

// The path that the PTX gives for a file; empty where it names none.
std::string file_name(const Program &, ptx::SourceLocation);

// "kernel.cu:143" of an op, or "PTX line 77" without -lineinfo.
std::string where(const Program &, uint32_t op_index);

// "saxpy(int, float*)" for "_Z5saxpyiPf"; the name itself if it is not mangled.
std::string demangle(const std::string &name);

}  // namespace warpsim
