// Loads modules into device memory and lowers kernels on first use.
#include "lower/module.h"

#include <algorithm>
#include <cstring>

#include "lower/function_lowering.h"
#include "memory/global_memory.h"
#include "ptx/charged_lines.h"
#include "ptx/parser.h"

namespace warpsim {

namespace {

// The address that a relocation stores: a variable's or a function's handle.
uint64_t symbol_address(const LoadedModule &module, const std::string &name) {
    if (const auto found = module.globals.find(name); found != module.globals.end()) return found->second;
    uint64_t declared = 0;
    for (size_t i = 0; i < module.ast.functions.size(); ++i) {
        const ptx::Function &function = module.ast.functions[i];
        if (function.name != name) continue;
        if (!function.is_declaration) return function_handle(i);
        declared = function_handle(i);
    }
    if (declared) return declared;
    throw std::runtime_error("an initial value names " + name + ", which the module does not define");
}

void apply(const LoadedModule &module, const ptx::Variable &v, std::byte *bytes) {
    for (const auto &relocation : v.relocations) {
        const uint64_t value = symbol_address(module, relocation.symbol) + uint64_t(relocation.addend);
        const bool one_byte = relocation.mask_byte != ~0u;
        const uint64_t width = one_byte ? 1 : std::min<uint64_t>(8, std::max(1u, ptx::type_bytes(v.type)));
        const uint64_t shifted = one_byte ? value >> (8 * relocation.mask_byte) : value;
        if (relocation.offset > v.bytes || width > v.bytes - relocation.offset) {
            throw std::runtime_error("an initial value of " + v.name + " lies outside of it");
        }
        std::memcpy(bytes + relocation.offset, &shifted, width);
    }
}

}  // namespace

std::unique_ptr<LoadedModule> load_module(std::string_view ptx_text, GlobalMemory &memory, std::string_view wrappers,
                                          const LoadedModule *first) {
    auto module = std::make_unique<LoadedModule>();
    module->ast = ptx::parse(ptx_text);
    ptx::charge_lines(module->ast, wrappers);
    module->state.files = module->ast.files;
    module->state.calls = module->ast.calls;
    module->memory = &memory;
    const auto in_memory = [](const ptx::Variable &v) {
        return (v.space == ptx::Space::global || v.space == ptx::Space::const_) && v.bytes > 0;
    };
    // Declared sizes are a program's word: they are counted before any of them takes memory.
    std::map<std::string, uint64_t> declared;
    uint64_t total = 0;
    for (const ptx::Variable &v : module->ast.variables) {
        if (!in_memory(v) || !declared.emplace(v.name, v.bytes).second) continue;
        total += v.bytes;
        const uint64_t free = memory.limit() - memory.used();
        if (total > free) {
            throw OutOfMemory("out of device memory: its variables up to " + v.name + " are " + std::to_string(total) +
                              " bytes, and " + std::to_string(free) + " of " + std::to_string(memory.limit()) +
                              " are free (WARPSIM_MAX_MEMORY sets the limit)");
        }
    }
    for (const ptx::Variable &v : module->ast.variables) {
        if (!in_memory(v) || module->globals.count(v.name)) continue;
        const MemoryKind kind = v.managed                       ? MemoryKind::managed
                                : v.space == ptx::Space::const_ ? MemoryKind::module_const
                                                                : MemoryKind::module_global;
        const uint64_t address =
            first && v.managed ? first->globals.at(v.name) : memory.allocate(v.bytes, kind, GlobalMemory::Fill::zeros);
        if (!address) throw OutOfMemory("out of device memory for " + v.name + ": no address space is left");
        module->globals[v.name] = address;
        module->global_bytes[v.name] = v.bytes;
    }
    for (const ptx::Variable &v : module->ast.variables) {
        if (!in_memory(v) || v.external || (first && v.managed)) continue;  // another of the linked modules defines it
        std::byte *bytes = memory.find(module->globals[v.name])->host;
        if (!v.initial.empty()) std::memcpy(bytes, v.initial.data(), std::min<uint64_t>(v.initial.size(), v.bytes));
        apply(*module, v, bytes);
    }
    return module;
}

std::string kernel_name(const LoadedModule &module, uint64_t address) {
    const auto &functions = module.ast.functions;
    for (size_t i = 0; i < functions.size(); ++i) {
        if (function_handle(i) == address && functions[i].is_entry && !functions[i].is_declaration)
            return functions[i].name;
    }
    return {};
}

Program *find_kernel(LoadedModule &module, const std::string &name) {
    if (const auto found = module.programs.find(name); found != module.programs.end()) return found->second.get();
    const auto &functions = module.ast.functions;
    const auto kernel = std::find_if(functions.begin(), functions.end(), [&](const ptx::Function &f) {
        return f.is_entry && !f.is_declaration && f.name == name;
    });
    if (kernel == functions.end()) return nullptr;

    auto program = std::make_unique<Program>();
    program->name = name;
    program->module = &module.state;
    ProgramContext context;
    context.module = &module;
    context.program = program.get();
    analyze_program(context, size_t(kernel - functions.begin()));
    std::vector<std::unique_ptr<FunctionLowering>> lowered;
    for (size_t index : reachable_functions(context)) {
        lowered.push_back(std::make_unique<FunctionLowering>(context, functions[index], uint32_t(lowered.size())));
        lowered.back()->place_variables();
    }
    for (auto &function : lowered) function->run();
    program->local_bytes = program->functions[0].local_bytes;
    measure_stack(context);
    return (module.programs[name] = std::move(program)).get();
}

}  // namespace warpsim
