#include "core/names.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/program.h"
#include "core/statistics.h"

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
        "launch_race",
        "noncoherent_read",
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

namespace {

std::string file_and_line(const std::string &file, uint32_t line) {
    return (file.empty() ? "?" : file.substr(file.find_last_of('/') + 1)) + ":" + std::to_string(line);
}

}  // namespace

std::string place(const Program &program, uint32_t index) {
    const OpDebug &debug = program.debug[index];
    if (!debug.nearest.line) return "PTX line " + std::to_string(debug.ptx_line);
    return file_and_line(file_name(program, debug.nearest), debug.nearest.line);
}

std::string where(const Program &program, uint32_t index) {
    const ptx::SourceLocation source = program.debug[index].nearest;
    const std::string text = place(program, index);
    return is_header(program, source) ? text + " (" + calls_text(calls_to(program, source)) + ")" : text;
}

std::string instruction_at(const Program &program, uint32_t index) {
    return program.debug[index].text + " at " + where(program, index);
}

std::vector<CallSite> calls_to(const Program &program, ptx::SourceLocation source) {
    std::vector<CallSite> calls;
    while (source.line && source.calls) {
        const ptx::InlinedCall &call = program.module->calls[source.calls - 1];
        calls.push_back({file_name(program, call.at), call.at.line, short_name(call.function)});
        source = call.at;
    }
    return calls;
}

std::string calls_text(const std::vector<CallSite> &calls) {
    constexpr size_t kMostCalls = 4;
    std::string text;
    for (size_t i = 0; i < calls.size() && i < kMostCalls; ++i) {
        const CallSite &call = calls[i];
        if (i) text += ", ";
        if (!call.function.empty()) text += "in " + call.function + (call.function.back() == ')' ? ", " : "(), ");
        text += "called at " + file_and_line(call.file, call.line);
    }
    if (calls.size() > kMostCalls) text += ", and " + std::to_string(calls.size() - kMostCalls) + " calls further out";
    return text;
}

bool is_header(const Program &program, ptx::SourceLocation source) {
    const uint32_t file = source.file;
    if (!source.line) return false;
    while (source.calls) source = program.module->calls[source.calls - 1].at;
    return source.file != file;
}

std::string short_name(const std::string &mangled) {
    const std::string name = demangle(mangled);
    if (name == mangled) return name;
    // Behind the scopes and before the parameters, outside of template arguments: "void a::B<1>::f<2>(int) const" is f.
    // A function that has a lambda is a scope, too: "k(int)::{lambda(int)#1}::operator()(int) const".
    constexpr std::string_view kCall = "operator()";
    std::string part;
    int depth = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if (depth == 0 && name.compare(i, kCall.size(), kCall) == 0) return std::string(kCall);
        if (c == '<' || c == '(' || c == '{') {
            if (depth == 0 && c == '(') {  // parameters, unless a scope's
                size_t end = i;
                for (int open = 0; end < name.size(); ++end) {
                    open += (name[end] == '(') - (name[end] == ')');
                    if (!open) break;
                }
                const size_t scope = name.find("::", end);
                if (scope != end + 1 && (scope == std::string::npos || name.compare(end, 9, ") const::") != 0)) break;
                i = scope + 1;
                part.clear();
                continue;
            }
            ++depth;
        } else if (c == '>' || c == ')' || c == '}') {
            --depth;
        } else if (depth == 0 && (c == ' ' || c == ':')) {
            part.clear();
        } else if (depth == 0) {
            part += c;
        }
    }
    return part;
}

std::string demangle(const std::string &name) {
    if (!name.starts_with("_Z")) return name;  // "f" is no float
    int status = 0;
    char *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 && text ? text : name;
    std::free(text);
    return result;
}

}  // namespace warpsim
