#include "core/names.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>

#include "core/program.h"

namespace warpsim {

const char *class_name(OpClass cls) {
    static constexpr std::array<const char *, size_t(OpClass::count_)> kNames = {
        "integer",      "fp16",          "fp32",          "fp64",        "special_function",
        "conversion",   "move",          "predicate",     "control",     "barrier",
        "fence",        "load_global",   "store_global",  "load_shared", "store_shared",
        "load_local",   "store_local",   "load_constant", "load_param",  "store_param",
        "load_generic", "store_generic", "atomic",        "shuffle",     "vote",
        "ldmatrix",     "stmatrix",      "tensor",        "warpgroup",   "async_copy",
        "mbarrier",     "bulk_copy",     "tensor_copy",   "texture",     "surface",
        "other",
    };
    return kNames[size_t(cls)];
}

const char *hazard_name(HazardKind kind) {
    static constexpr std::array<const char *, size_t(HazardKind::count_)> kNames = {
        "out_of_bounds",
        "misaligned",
        "uninitialized_shared",
        "uninitialized_variable",
        "shared_race",
        "global_race",
        "async_pending",
        "divergent_barrier",
        "deadlock",
        "missing_lanes",
        "invalid_address",
        "trap",
        "assertion",
        "budget",
        "illegal_instruction",
        "invalid_argument",
        "mbarrier",
        "proxy_fence",
        "wgmma",
        "cluster",
        "setmaxnreg",
    };
    return kNames[size_t(kind)];
}

const char *access_kind(OpClass cls) {
    switch (cls) {
        case OpClass::load_shared:
        case OpClass::load_global:
        case OpClass::load_generic:
            return "load";
        case OpClass::store_shared:
        case OpClass::store_global:
        case OpClass::store_generic:
            return "store";
        case OpClass::ldmatrix:
            return "ldmatrix";
        case OpClass::stmatrix:
            return "stmatrix";
        case OpClass::async_copy:
            return "cp_async";
        case OpClass::atomic:
            return "atomic";
        default:
            return nullptr;
    }
}

const char *copy_noun(OpClass cls) {
    return cls == OpClass::tensor_copy ? "TMA copy" : "bulk copy";
}

std::string file_name(const Program &program, ptx::SourceLocation source) {
    const auto &files = program.module->files;
    const auto file = files.find(source.file);
    return file == files.end() ? "" : file->second;
}

std::string where(const Program &program, uint32_t index) {
    const OpDebug &debug = program.debug[index];
    if (!debug.source.line) return "PTX line " + std::to_string(debug.ptx_line);
    const std::string name = file_name(program, debug.source);
    return (name.empty() ? "?" : name.substr(name.find_last_of('/') + 1)) + ":" + std::to_string(debug.source.line);
}

std::string demangle(const std::string &name) {
    int status = 0;
    char *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 && text ? text : name;
    std::free(text);
    return result;
}

}  // namespace warpsim
