// What things are called in messages and reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/hazard_kind.h"
#include "core/op.h"

namespace warpsim {

struct CallSite;
struct Program;

const char *class_name(OpClass);      // "fp32", "load_shared": the report's "by_class"
const char *hazard_name(HazardKind);  // "shared_race": the report's "kind"

// The report's name for what an op does to shared or global memory: "load", "cp_async", ...; null for other ops.
const char *access_kind(OpClass);

// Of OpClass::bulk_copy and tensor_copy: "bulk copy", "TMA copy".
const char *copy_noun(OpClass);

// The path that the PTX gives for a file; empty where it names none.
std::string file_name(const Program &, ptx::SourceLocation);

// "kernel.cu:143" of an op, or "PTX line 77" without -lineinfo. Of a header's code with the calls that lead there:
// "tile.cuh:12 (in load_tile(), called at kernel.cu:88)".
std::string where(const Program &, uint32_t op_index);
// The place alone.
std::string place(const Program &, uint32_t op_index);
// "ld.global.f32 at kernel.cu:143"
std::string instruction_at(const Program &, uint32_t op_index);

// The calls that lead to a place, the innermost first; none where its code was not inlined.
std::vector<CallSite> calls_to(const Program &, ptx::SourceLocation);
// "in load_tile(), called at kernel.cu:88, in run(), called at kernel.cu:120"; empty where there are no calls.
std::string calls_text(const std::vector<CallSite> &);
// Does the place lie in another file than the outermost of the calls that lead there?
bool is_header(const Program &, ptx::SourceLocation);

// "load_tile" for "_ZN4pipe6Loader9load_tileILi4EEEvPKf": without scopes, parameters and template arguments.
std::string short_name(const std::string &mangled);

// "saxpy(int, float*)" for "_Z5saxpyiPf"; the name itself if it is not mangled.
std::string demangle(const std::string &name);

}  // namespace warpsim
