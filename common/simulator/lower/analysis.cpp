#include "lower/function_lowering.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/names.h"
#include "core/round_up.h"
#include "device_runtime/device_runtime.h"
#include "lower/instruction_table.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

// What a device since compute capability 8.0 keeps of each block's shared memory, at its start.
constexpr uint32_t kReservedSharedBytes = 1024;
constexpr uint32_t kMostRegisters = 65536, kMostOfThread = 256;  // of a multiprocessor, of a thread
constexpr uint64_t kMostSharedBytes = 64ull << 20;  // hostile declarations only; launches check the device's limit

template <class F>
void for_each_symbol(const Operand &operand, const F &f) {
    if (operand.kind == Operand::Kind::symbol) f(operand.name);
    for (const Operand &element : operand.elements) for_each_symbol(element, f);
}

template <class F>
void for_each_symbol(const ptx::Function &function, const F &f) {
    for (const Instruction &in : function.body) {
        for (const Operand &operand : in.operands) for_each_symbol(operand, f);
    }
}

bool calls_pointer(const Instruction &in) {
    return flow_of(in) == Flow::call && in.operands.size() > 1 && in.operands[1].kind != Operand::Kind::symbol;
}

bool asks_for_reserved_shared(const Instruction &in) {
    return std::any_of(in.operands.begin(), in.operands.end(), [](const Operand &operand) {
        return operand.kind == Operand::Kind::special && operand.name.starts_with("%reserved_smem_offset_");
    });
}

bool has_space(const Instruction &in, std::string_view space) {
    return std::any_of(in.modifiers.begin(), in.modifiers.end(), [&](const std::string &m) {
        return m.starts_with(space) && (m.size() == space.size() || m[space.size()] == ':');
    });
}

bool is_generic(const Instruction &in) {
    for (const char *space : {"global", "shared", "local", "const", "param"}) {
        if (has_space(in, space)) return false;
    }
    return true;
}

// What the function does depends on what other blocks did.
bool depends_on_other_blocks(const std::string &function) {
    const SystemCall *call = find_system_call(function);
    return call && call->ordered;
}

// The instruction lets blocks see each other's progress.
bool communicates(const Instruction &in) {
    const bool elsewhere = has_space(in, "global") || is_generic(in);
    if (in.opcode == "atom" || in.opcode == "red") return elsewhere;
    if (in.opcode == "ld" || in.opcode == "st") {
        return elsewhere &&
               (in.has("volatile") || in.has("acquire") || in.has("release") || in.has("relaxed") || in.has("mmio"));
    }
    if (in.opcode == "cp") return in.has("reduce") && elsewhere;
    if (in.opcode == "membar") return in.has("gl") || in.has("sys");
    if (in.opcode == "fence") return in.has("gpu") || in.has("sys");
    return false;
}

// How often the function's instructions name each register.
std::vector<uint32_t> count_names(const ptx::Function &function) {
    std::vector<uint32_t> count(function.registers.size(), 0);
    const std::function<void(const Operand &)> add = [&](const Operand &operand) {
        if (operand.kind == Operand::Kind::reg && operand.index < count.size()) ++count[operand.index];
        for (const Operand &element : operand.elements) add(element);
    };
    for (const Instruction &in : function.body) {
        for (const Operand &operand : in.operands) add(operand);
        if (in.guard >= 0 && size_t(in.guard) < count.size()) ++count[size_t(in.guard)];
    }
    return count;
}

// What an update of integers does whose old value nothing uses: those that do the same may come in any order, and
// nobody sees it. Empty: it is none, or it orders other accesses. Sums and bits are the same for either sign.
std::string unseen_update(const Instruction &in, const std::vector<uint32_t> &names) {
    if ((in.opcode != "atom" && in.opcode != "red") || in.operands.empty() || in.modifiers.empty()) return "";
    for (const char *order : {"acquire", "release", "acq_rel"}) {
        if (in.has(order)) return "";
    }
    const std::string &type = in.modifiers.back();
    const char *const integers[] = {"u32", "s32", "b32", "u64", "s64", "b64"};
    if (std::find(std::begin(integers), std::end(integers), type) == std::end(integers)) return "";
    const Operand &old = in.operands[0];
    const bool unused = in.opcode == "red" || old.kind == Operand::Kind::sink ||
                        (old.kind == Operand::Kind::reg && old.index < names.size() && names[old.index] == 1);
    if (!unused) return "";
    for (const char *operation : {"add", "and", "or", "xor"}) {
        if (in.has(operation)) return std::string(operation).append(type, 1);
    }
    for (const char *operation : {"min", "max"}) {
        if (in.has(operation)) return std::string(operation).append(type);
    }
    return "";
}

// Bytes of an element of an access in that space; 4 where it is none or wider.
unsigned access_bytes(const Instruction &in, const char *space) {
    const std::string &op = in.opcode;
    const bool image = op == "tex" || op == "tld4" || op == "suld" || op == "sust";  // texels may be bytes
    if (image && std::string_view(space) == "global") return 1;
    if (op != "ld" && op != "st" && op != "atom" && op != "red" && op != "ldu" && op != "wmma") return 4;
    if (!has_space(in, space) && !is_generic(in)) return 4;
    for (const std::string &modifier : in.modifiers) {
        const unsigned bytes = ptx::type_bytes(ptx::type_from_name(modifier));
        if (bytes == 1 || bytes == 2) return bytes;
    }
    return 4;
}

void place_shared(ProgramContext &context, const std::set<std::string> &named, const std::vector<size_t> &functions) {
    Program &p = *context.program;
    std::vector<const ptx::Variable *> dynamic;
    uint64_t end = p.reserved_shared, dynamic_align = 16;
    const auto place = [&](const ptx::Variable &v) {
        if (v.space != Space::shared || context.shared.count(v.name)) return;
        if (v.external || v.bytes == 0) {
            dynamic.push_back(&v);
            dynamic_align = std::max<uint64_t>(dynamic_align, v.align);
            context.shared[v.name] = {0, 0};
            return;
        }
        end = round_up(end, std::max(1u, v.align));
        if (end + v.bytes > kMostSharedBytes || v.align > 65536)
            throw Unsupported(p.name + ": " + v.name + " is too large");
        context.shared[v.name] = {uint32_t(end), v.bytes};
        end += v.bytes;
    };
    for (const ptx::Variable &v : context.module->ast.variables) {
        if (named.count(v.name)) place(v);
    }
    for (size_t f : functions) {
        for (const ptx::Variable &v : context.module->ast.functions[f].variables) place(v);
    }
    const auto dynamic_start = uint32_t(round_up(end, dynamic_align));
    p.static_shared = uint32_t(end) - p.reserved_shared;
    p.dynamic_shared_offset = dynamic_start - p.reserved_shared;
    for (const ptx::Variable *v : dynamic) context.shared[v->name] = {dynamic_start, 0};
    for (const auto &[name, place] : context.shared) {
        // All names of dynamic shared memory are one place.
        const auto same = std::find_if(p.shared_variables.begin(), p.shared_variables.end(),
                                       [bytes = place.bytes](const auto &other) { return !other.bytes && !bytes; });
        context.shared_numbers[name] = uint32_t(same - p.shared_variables.begin());
        if (same == p.shared_variables.end())
            p.shared_variables.push_back({short_name(name), place.offset, uint32_t(place.bytes)});
    }
}

// What ptxas gives each thread of a kernel that has setmaxnreg: as many as its launch bounds leave. 0: they do not say,
// for which it wants threads and blocks both.
uint32_t registers_at_launch(const ptx::Function &kernel) {
    const auto number = [&](const char *name) {
        const auto found = kernel.directives.find(name);
        uint64_t product = found == kernel.directives.end() ? 0 : 1;
        for (size_t i = 0; product && i < found->second.size(); ++i)
            product = std::min<uint64_t>(product * found->second[i], kMostRegisters);
        return uint32_t(product);
    };
    if (const uint32_t most = number("maxnreg")) return uint32_t(round_up(std::min(most, kMostOfThread), 8));
    const uint32_t threads = std::max(number("maxntid"), number("reqntid")), blocks = number("minnctapersm");
    if (!threads || !blocks) return 0;
    return std::min(uint32_t(kMostRegisters / (round_up(threads, kLanes) * blocks)) / 8 * 8, kMostOfThread);
}

// Where ptxas (of CUDA 13.0) leaves setmaxnreg out. What else it may find, too few registers for a piece of code, only
// its allocation of registers shows.
void find_registers_stay(Program &p, const ptx::Module &module, bool pointers) {
    if (module.debug) {
        p.registers_stay = "setmaxnreg ignored to allow debugging";
        p.registers_remedy = "Compile without -G";
    } else if (pointers) {
        p.registers_stay = "setmaxnreg ignored to maintain compatibility into 'extern' call";
        p.registers_remedy = "The kernel calls a function through a pointer, which may need any number of registers";
    } else if (!p.registers_at_launch) {
        p.registers_stay = "setmaxnreg ignored; unable to determine register count at entry";
        p.registers_remedy =
            "Give the kernel __launch_bounds__(threads, blocks) with both numbers, or __maxnreg__(registers)";
    }
}

void read_directives(Program &p, const ptx::Function &kernel) {
    const auto product = [](const std::vector<uint32_t> &values) {
        uint64_t n = 1;
        for (uint32_t v : values) n = std::min<uint64_t>(n * v, 1 << 20);
        return uint32_t(n);
    };
    if (const auto found = kernel.directives.find("maxntid"); found != kernel.directives.end()) {
        p.max_threads = std::min(p.max_threads, product(found->second));
    }
    if (const auto found = kernel.directives.find("reqntid"); found != kernel.directives.end()) {
        p.max_threads = std::min(p.max_threads, product(found->second));
        for (size_t i = 0; i < 3; ++i) p.required_threads[i] = i < found->second.size() ? found->second[i] : 1;
    }
    p.registers_at_launch = registers_at_launch(kernel);
    p.explicit_cluster = kernel.directives.count("explicitcluster");
    if (const auto found = kernel.directives.find("reqnctapercluster"); found != kernel.directives.end()) {
        for (size_t i = 0; i < 3; ++i) p.required_cluster[i] = i < found->second.size() ? found->second[i] : 1;
    }
    if (const auto found = kernel.directives.find("maxclusterrank"); found != kernel.directives.end())
        p.max_cluster_rank = found->second.empty() ? 0 : found->second[0];
    uint64_t offset = 0;
    for (const ptx::Variable &v : kernel.parameters) {
        offset = round_up(offset, std::max(1u, v.align));
        p.parameters.push_back({uint32_t(offset), uint32_t(v.bytes)});
        offset += v.bytes;
        if (offset > 32768) throw Unsupported(p.name + " has more than 32 KiB of parameters");
    }
    p.parameter_bytes = uint32_t(offset);
}

}  // namespace

void analyze_program(ProgramContext &context, size_t entry) {
    Program &p = *context.program;
    const ptx::Module &module = context.module->ast;
    for (size_t i = 0; i < module.functions.size(); ++i) {
        if (!module.functions[i].is_declaration) context.definitions[module.functions[i].name] = i;
    }
    read_directives(p, module.functions[entry]);

    // Everything that the kernel names, directly or through what it names; pointers may hold any function in a table.
    std::vector<size_t> functions{entry};
    std::set<size_t> seen{entry};
    std::set<std::string> named;
    std::set<std::string> updates;  // by which blocks meet
    bool pointers = false, stack_grows = false;
    const auto add = [&](const std::string &name) {
        named.insert(name);
        const auto found = context.definitions.find(name);
        if (found == context.definitions.end() || module.functions[found->second].is_entry) return;
        if (seen.insert(found->second).second) functions.push_back(found->second);
    };
    for (size_t i = 0; i < functions.size(); ++i) {
        const ptx::Function &function = module.functions[functions[i]];
        for_each_symbol(function, add);
        const std::vector<uint32_t> names = count_names(function);
        for (const Instruction &in : function.body) {
            const bool cluster_barrier = in.opcode == "barrier" && in.has("cluster");
            p.maps_addresses = p.maps_addresses || in.opcode == "mapa";
            p.uses_clusters = p.uses_clusters || cluster_barrier || p.maps_addresses;
            if (asks_for_reserved_shared(in)) p.reserved_shared = kReservedSharedBytes;
            stack_grows = stack_grows || in.opcode == "alloca";
            if (communicates(in)) updates.insert(unseen_update(in, names));
            p.shadow_granule = std::min(p.shadow_granule, access_bytes(in, "shared"));
            p.global_granule = std::min({p.global_granule, access_bytes(in, "global"), access_bytes(in, "const")});
            if (flow_of(in) == Flow::call && in.operands.size() > 1 && depends_on_other_blocks(in.operands[1].name)) {
                p.communicates = true;  // addresses from the heap do, and what the device runtime counts
            }
            if (!calls_pointer(in) || pointers) continue;
            pointers = true;
            for (const ptx::Variable &v : module.variables) {
                for (const auto &relocation : v.relocations) add(relocation.symbol);
            }
        }
    }
    p.communicates = p.communicates || updates.size() > 1 || updates.count("");
    p.updates_commute = !p.communicates && !updates.empty();
    for (size_t f : functions) {
        const std::string &name = module.functions[f].name;
        context.program_functions[name] = uint32_t(p.functions.size());
        p.by_handle[function_handle(f)] = uint32_t(p.functions.size());
        p.functions.emplace_back();
        p.functions.back().name = name;
    }
    p.recursive = pointers || stack_grows;  // in either case the stack has no fixed depth
    find_registers_stay(p, module, pointers);
    place_shared(context, named, functions);
}

std::vector<size_t> reachable_functions(const ProgramContext &context) {
    std::vector<size_t> result;
    for (const Program::Function &f : context.program->functions) result.push_back(context.definitions.at(f.name));
    return result;
}

void measure_stack(ProgramContext &context) {
    Program &p = *context.program;
    const auto functions = reachable_functions(context);
    std::vector<std::set<uint32_t>> callees(functions.size());
    for (size_t i = 0; i < functions.size(); ++i) {
        for (const Instruction &in : context.module->ast.functions[functions[i]].body) {
            if (flow_of(in) != Flow::call || in.operands.size() < 2) continue;
            const auto found = context.program_functions.find(in.operands[1].name);
            if (found != context.program_functions.end()) callees[i].insert(found->second);
        }
    }
    // Longest chain from the kernel, by repeated relaxation: one round for each function finds it unless there is a
    // cycle.
    std::vector<uint64_t> depth(functions.size(), 0);
    // A frame that calls takes 16 bytes at least, as enter_function has it.
    depth[0] = callees[0].empty() ? p.functions[0].local_bytes : std::max(16u, p.functions[0].local_bytes);
    bool changed = true;
    for (size_t round = 0; changed && round <= functions.size(); ++round) {
        changed = false;
        for (size_t i = 0; i < functions.size(); ++i) {
            if (depth[i] == 0 && i != 0) continue;
            for (uint32_t callee : callees[i]) {
                const uint64_t d = depth[i] + std::max(16u, p.functions[callee].local_bytes);
                if (d > depth[callee]) {
                    depth[callee] = d;
                    changed = true;
                }
            }
        }
    }
    p.recursive = p.recursive || changed;
    if (p.recursive) {
        // Cycles made the depths meaningless: every function once, and the launch's stack limit on top of it.
        p.stack_bytes = 0;
        for (const Program::Function &f : p.functions) p.stack_bytes += std::max(16u, f.local_bytes);
    } else {
        p.stack_bytes = *std::max_element(depth.begin(), depth.end());
    }
}

}  // namespace warpsim
