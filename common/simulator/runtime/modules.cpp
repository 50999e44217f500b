#include "runtime/modules.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "fatbin/readable.h"
#include "ptx/parser.h"
#include "runtime/link_ptx.h"
#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

std::string file_of(const void *address) {
    Dl_info info{};
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "the program";
}

// "sm_80, sm_90 machine code", for the message that says why nothing runs.
std::string contents(const std::vector<fatbin::Entry> &entries) {
    std::string ptx, machine;
    for (const fatbin::Entry &entry : entries) {
        std::string &list = entry.is_ptx ? ptx : machine;
        if (!list.empty()) list += ", ";
        list += (entry.is_ptx ? "compute_" : "sm_") + std::to_string(entry.compute);
        if (entry.suffix) list += entry.suffix;
    }
    return (ptx.empty() ? "no PTX" : "PTX for " + ptx) + (machine.empty() ? "" : " and machine code for " + machine);
}

}  // namespace

std::string demangle(const std::string &name) {
    // Static kernels of separately compiled files: "__nv_static_26__<hash>_7_file_cu_x__Z1ki".
    const size_t inner = name.rfind("__nv_static_", 0) == 0 ? name.find("__Z") : std::string::npos;
    const char *mangled = name.c_str() + (inner == std::string::npos ? 0 : inner + 1);
    int status = 0;
    char *text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    const std::string result = status == 0 && text ? text : name;
    std::free(text);
    return result;
}

Library *Modules::add_fat_binary(const void *pointer) {
    auto library = std::make_unique<Library>();
    library->origin = file_of(pointer);
    library->registered = true;
    library->fat_binary = pointer;
    libraries_.push_back(std::move(library));
    return libraries_.back().get();
}

Library *Modules::add_data(const void *code, const char *caller) {
    const std::string given = std::string(" given to ") + caller;
    const uint64_t readable = ReadableMemory().from(code);
    const auto *text = static_cast<const char *>(code);
    const size_t length = strnlen(text, readable);
    if (readable >= 4 && fatbin::is_fat_binary(code)) {
        auto library = std::make_unique<Library>();
        library->origin = "the fat binary" + given;
        library->fat_binary = code;
        libraries_.push_back(std::move(library));
        return libraries_.back().get();
    }
    if (length >= 4 && !std::memcmp(text, "\177ELF", 4)) {
        say("this library is machine code (a cubin): the simulator needs PTX");
        throw Failure{cudaErrorNoKernelImageForDevice};
    }
    if (length == readable) {
        say(readable ? "the PTX" + given + " has no end: a null character must follow it"
                     : std::string(caller) + ": there is no memory where the code should be");
        throw Failure{cudaErrorInvalidValue};
    }
    return add_text({text, length}, "the PTX" + given);
}

Library *Modules::add_text(std::string ptx, std::string origin) {
    auto library = std::make_unique<Library>();
    library->origin = std::move(origin);
    library->text = std::move(ptx);
    libraries_.push_back(std::move(library));
    return libraries_.back().get();
}

void Modules::remove(Library *library) {
    std::erase_if(kernels_, [&](const auto &entry) { return entry.second->library == library; });
    std::erase_if(variables_, [&](const auto &entry) { return entry.second->library == library; });
    if (library->module) {
        for (const auto &[name, address] : library->module->globals) library->module->memory->release(address);
    }
    std::erase_if(libraries_, [&](const auto &entry) { return entry.get() == library; });
}

Library *Modules::find_library(const void *handle) {
    for (const auto &library : libraries_) {
        if (library.get() == handle) return library.get();
    }
    throw Failure{cudaErrorInvalidResourceHandle};
}

Kernel *Modules::add_kernel(Library *library, const char *name, const void *host_stub) {
    std::unique_ptr<Kernel> &kernel = library->kernels[name];
    if (!kernel) {
        kernel = std::make_unique<Kernel>();
        kernel->name = name;
        kernel->display_name = demangle(name);
        kernel->library = library;
        kernels_[kernel.get()] = kernel.get();
    }
    if (host_stub) kernels_[host_stub] = kernel.get();
    return kernel.get();
}

Kernel *Modules::find_kernel(const void *stub_or_handle) {
    const auto it = kernels_.find(stub_or_handle);
    if (it == kernels_.end()) throw Failure{cudaErrorInvalidDeviceFunction};
    return it->second;
}

Kernel *Modules::kernel_of(Library *library, const std::string &name) {
    for (const std::string &known : kernel_names(library)) {
        if (known == name) return add_kernel(library, name.c_str(), nullptr);
    }
    throw Failure{cudaErrorSymbolNotFound};
}

std::vector<std::string> Modules::kernel_names(Library *library) {
    std::vector<std::string> names;
    for (const ptx::Function &function : loaded(*library).ast.functions) {
        if (function.is_entry && !function.is_declaration) names.push_back(function.name);
    }
    return names;
}

void Modules::add_variable(Library *library, const void *host, const char *name, size_t bytes, void **managed) {
    auto variable = std::make_unique<Variable>(Variable{name, bytes, library, managed});
    variables_[host] = variable.get();
    library->variables[host] = std::move(variable);
}

Variable *Modules::find_variable(const void *host) {
    const auto it = variables_.find(host);
    if (it == variables_.end()) throw Failure{cudaErrorInvalidSymbol};
    return it->second;
}

std::pair<uint64_t, uint64_t> Modules::address_of(const Variable &variable) {
    const LoadedModule &module = loaded(*variable.library);
    const auto it = module.globals.find(variable.name);
    if (it == module.globals.end()) throw Failure{cudaErrorInvalidSymbol};
    return {it->second, module.global_bytes.at(variable.name)};
}

void Modules::initialize_managed(Library &library) {
    for (const auto &[host, variable] : library.variables) {
        if (variable->managed) *variable->managed = reinterpret_cast<void *>(address_of(*variable).first);
    }
}

// The PTX that this device would run.
std::string Modules::choose_text(Library &library) {
    if (!library.text.empty()) return library.text;
    std::vector<fatbin::Entry> seen;
    std::vector<std::string> texts;
    for (const void *image : fatbin::images(library.fat_binary)) {
        const std::vector<fatbin::Entry> entries = fatbin::list(image);
        // Every device here has the features that end in 'a' of its own architecture.
        const fatbin::Entry *best = fatbin::choose(entries, profile_.compute, true);
        if (best) texts.push_back(fatbin::ptx_text(*best));
        seen.insert(seen.end(), entries.begin(), entries.end());
    }
    if (texts.empty()) {
        say(library.origin + " holds " + contents(seen) + ", which " + profile_.name +
            " cannot run here: compile it with PTX, e.g. `nvcc -arch=sm_80` or -gencode "
            "arch=compute_80,code=compute_80 (WARPSIM_DEVICE picks another device)");
        throw Failure{cudaErrorNoKernelImageForDevice};
    }
    return texts.size() == 1 ? std::move(texts.front()) : link_ptx(texts);
}

LoadedModule &Modules::loaded(Library &library) {
    if (library.module) return *library.module;
    try {
        const Runtime &runtime = *Runtime::get();
        library.module = load_module(choose_text(library), *runtime.memory, runtime.options.wrappers);
        return *library.module;
    } catch (const Failure &) {
        throw;
    } catch (const ptx::ParseError &error) {
        say(library.origin + ": " + error.what());
        throw Failure{cudaErrorInvalidPtx};
    } catch (const OutOfMemory &error) {
        say(library.origin + ": " + error.what());
        throw Failure{cudaErrorMemoryAllocation};
    } catch (const std::exception &error) {
        say(library.origin + ": " + error.what());
        throw Failure{cudaErrorInvalidKernelImage};
    }
}

Program &Modules::program(Kernel &kernel) {
    if (kernel.program) return *kernel.program;
    LoadedModule &module = loaded(*kernel.library);
    try {
        kernel.program = warpsim::find_kernel(module, kernel.name);
    } catch (const Unsupported &error) {
        say("kernel " + kernel.display_name + ": " + error.what());
        throw Failure{cudaErrorNotSupported};
    } catch (const std::exception &error) {
        say("kernel " + kernel.display_name + ": " + error.what());
        throw Failure{cudaErrorInvalidPtx};
    }
    if (!kernel.program) {
        say("kernel " + kernel.display_name + " is not in the PTX of " + kernel.library->origin);
        throw Failure{cudaErrorInvalidDeviceFunction};
    }
    return *kernel.program;
}

void Modules::unload_all() {
    for (const auto &library : libraries_) {
        for (const auto &[name, kernel] : library->kernels) kernel->program = nullptr;
        library->module.reset();
    }
}

}  // namespace warpsim::rt
