// Modules in device memory, and their kernels lowered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/program.h"
#include "ptx/ast.h"

namespace warpsim {

class GlobalMemory;

// A parsed module whose variables have addresses. Lives as long as its library is registered.
struct LoadedModule {
    ptx::Module ast;
    std::map<std::string, uint64_t> globals;  // .global and .const variables: device addresses
    std::map<std::string, uint64_t> global_bytes;
    std::map<std::string, std::unique_ptr<Program>> programs;  // lowered on first use
    GlobalMemory *memory = nullptr;
    ModuleState state;
};

// Gives module-scope variables memory and their initial values (relocations included).
// Throws std::runtime_error, ptx::ParseError; OutOfMemory, before it takes any, where they do not fit together.
// wrappers: patterns of files whose code counts as their caller's (ptx/charged_lines.h), besides those that are known.
// first: the same module as it is loaded on another device, whose managed variables are this one's, too.
std::unique_ptr<LoadedModule> load_module(std::string_view ptx_text, GlobalMemory &, std::string_view wrappers = {},
                                          const LoadedModule *first = nullptr);

// The lowered kernel; nullptr where the module has no such entry. Throws Unsupported.
Program *find_kernel(LoadedModule &, const std::string &name);

// The kernel that has this address in kernels of the module, as code for launches by kernels has it; empty: none has.
std::string kernel_name(const LoadedModule &, uint64_t address);

struct OutOfMemory : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An instruction that warpsim does not know: "mma.sync.aligned.m8n8k4... (PTX line 91, kernel.cu:33) is not supported:
// ...".
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace warpsim
