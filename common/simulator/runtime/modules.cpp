#include "runtime/modules.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "fatbin/fatbin.h"
#include "ptx/parser.h"
#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

constexpr unsigned kFilesPerModule = 1 << 16;

// The rest of a line behind `word`, or null where the line does not begin with it.
const char *after(std::string_view line, std::string_view word) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line.substr(begin, word.size()) != word) return nullptr;
    const size_t end = begin + word.size();
    return end < line.size() && (line[end] == ' ' || line[end] == '\t') ? line.data() + end : nullptr;
}

// `line` with the file number at `number`, and the one behind inlined_at, raised by `shift`.
std::string renumbered(std::string_view line, const char *number, unsigned shift) {
    constexpr std::string_view kInlined = "inlined_at ";
    std::string result(line.substr(0, number - line.data()));
    const auto append_number = [&](std::string_view text) {
        char *rest = nullptr;
        const unsigned long file = std::strtoul(text.data(), &rest, 10);  // the line's end ends it at the latest
        result += ' ' + std::to_string(file + shift);
        return text.substr(rest - text.data());
    };
    std::string_view rest = append_number(line.substr(number - line.data()));
    if (const size_t at = rest.find(kInlined); at != std::string_view::npos) {
        result.append(rest.substr(0, at + kInlined.size()));
        rest = append_number(rest.substr(at + kInlined.size()));
    }
    return result.append(rest) + '\n';
}

}  // namespace

std::string link_ptx(const std::vector<std::string> &modules) {
    unsigned version = 0;
    std::string target, body;
    for (size_t index = 0; index < modules.size(); ++index) {
        const std::string_view text = modules[index];
        const unsigned shift = static_cast<unsigned>(index) * kFilesPerModule;
        for (size_t begin = 0; begin < text.size();) {
            size_t end = text.find('\n', begin);
            if (end == std::string_view::npos) end = text.size();
            const std::string_view line = text.substr(begin, end - begin);
            begin = end + 1;
            unsigned major = 0, minor = 0;
            if (const char *rest = after(line, ".version")) {
                if (std::sscanf(rest, "%u.%u", &major, &minor) == 2) version = std::max(version, major * 10 + minor);
            } else if (after(line, ".target")) {
                if (target.empty()) target = line;
            } else if (after(line, ".address_size")) {
                continue;
            } else if (const char *number = after(line, ".file"); number || (number = after(line, ".loc"))) {
                body += renumbered(line, number, shift);
            } else {
                body.append(line);
                body += '\n';
            }
        }
    }
    return ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + "\n" + target +
           "\n.address_size 64\n" + body;
}

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
    const auto release = [](const Library &loaded) {
        if (!loaded.module) return;
        for (const auto &[name, address] : loaded.module->globals) loaded.module->memory->release(address);
    };
    for (const auto &[device, other] : library->others) release(*other);
    release(*library);
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
    Kernel *const kernel = it->second;
    Library &library = here(*kernel->library);
    if (library.device == 0) return kernel;
    std::unique_ptr<Kernel> &other = library.kernels[kernel->name];
    if (!other) {
        other = std::make_unique<Kernel>();
        other->name = kernel->name;
        other->display_name = kernel->display_name;
        other->library = &library;
        other->first = kernel;
        kernels_[other.get()] = kernel;
    }
    return other.get();
}

Library &Modules::here(Library &library) {
    const unsigned device = current_device();
    if (library.device == device || library.device != 0) return library;
    std::unique_ptr<Library> &other = library.others[device];
    if (!other) {
        other = std::make_unique<Library>();
        other->device = device;
        other->origin = library.origin;
        other->fat_binary = library.fat_binary;
        other->text = library.text;
        other->registered = library.registered;
    }
    return *other;
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
    loaded(*variable.library);  // where managed variables are made, for all devices
    const LoadedModule &module = loaded(here(*variable.library));
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

// Of a library on another device the one on device 0, loaded.
const Library *Modules::first_of(const Library &library) {
    for (const auto &first : libraries_) {
        const auto found = first->others.find(library.device);
        if (found == first->others.end() || found->second.get() != &library) continue;
        loaded(*first);
        return first.get();
    }
    return nullptr;
}

LoadedModule &Modules::loaded(Library &library) {
    if (library.module) return *library.module;
    try {
        const Runtime &runtime = *Runtime::get();
        // Managed variables are there once, for all devices.
        const Library *const first = library.device ? first_of(library) : nullptr;
        library.module = load_module(choose_text(library), runtime.devices->memory(library.device),
                                     runtime.options.wrappers, first ? first->module.get() : nullptr);
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
        for (const auto &[device, other] : library->others) {
            for (const auto &[name, kernel] : other->kernels) kernel->program = nullptr;
            other->module.reset();
        }
    }
}

void Modules::unload(unsigned device) {
    for (const auto &library : libraries_) {
        const auto found = library->others.find(device);
        if (device && found == library->others.end()) continue;
        Library &loaded = device ? *found->second : *library;
        for (const auto &[name, kernel] : loaded.kernels) kernel->program = nullptr;
        loaded.module.reset();
    }
}

}  // namespace warpsim::rt
