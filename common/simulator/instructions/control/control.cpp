// Control flow, calls, and what has no other effect than on the order in which things run.
#include <algorithm>

#include "core/op_formats.h"
#include "core/warp.h"
#include "device_runtime/device_runtime.h"
#include "hazard/global_shadow.h"
#include "instructions/rows.h"
#include "lower/function_lowering.h"
#include "machine/context.h"
#include "machine/core_ops.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

// Its blocks wait for each other through the workspace of a cooperative launch, and the launch is none.
bool lacks_a_workspace(WarpContext &w) {
    if (w.worker->launch->workspace) return false;
    for (const Program::Function &function : w.block->program->functions)
        for (const auto &special : function.specials)
            if (Special(special.which) == Special::envreg2) return true;
    return false;
}

void exec_trap(Warp &w, const Op &op) {
    std::string text = "the kernel executed " + w.block->program->debug[op.index].text;
    if (lacks_a_workspace(context_of(w)))
        text +=
            ". A barrier of the whole grid (cooperative_groups::grid_group::sync()) needs a launch by "
            "cudaLaunchCooperativeKernel or with cudaLaunchAttributeCooperative, and this launch is neither";
    report_hazard(w, op, HazardKind::trap, __builtin_ctz(w.exec), 0, std::move(text));
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

FunctionLowering &core(Lowering &l) {
    return static_cast<FunctionLowering &>(l);
}

Type type_of_bytes(Lowering &l, const Instruction &in, unsigned bytes) {
    switch (bytes) {
        case 1:
            return Type::b8;
        case 2:
            return Type::b16;
        case 4:
            return Type::b32;
        case 8:
            return Type::b64;
        default:
            l.unsupported(in, "an argument of " + std::to_string(bytes) + " bytes in a register");
    }
}

// Places in the caller's frame of what a call passes or gets back; a register gets a temporary place.
struct CallPlace {
    uint32_t offset;
    uint32_t bytes;
    const Operand *operand;
};

CallPlace place_of(Lowering &l, const Instruction &in, const Operand &operand, uint32_t wanted_bytes) {
    if (operand.kind == Operand::Kind::symbol) {
        uint32_t offset;
        uint64_t bytes;
        if (!core(l).local_place(operand.name, offset, bytes)) l.unsupported(in, "unknown argument " + operand.name);
        return {offset, uint32_t(bytes), nullptr};
    }
    const unsigned bytes = operand.kind == Operand::Kind::reg ? l.register_bytes(operand) : wanted_bytes;
    return {core(l).local_temporary(std::max(bytes, 1u)), bytes, &operand};
}

void lower_bra(Lowering &l, const Instruction &in) {
    const uint32_t target = core(l).block_at(in.operands[0].index);
    l.emit_row(in).target = target;
}

void lower_brx(Lowering &l, const Instruction &in) {
    const uint32_t index = l.source(in.operands[0], Type::u32);
    const Operand &table = in.operands[1];
    std::vector<uint32_t> blocks;
    for (uint32_t label : core(l).function().labels[table.index].targets) blocks.push_back(core(l).block_at(label));
    if (blocks.empty() || blocks.size() > 0xffff)
        l.unsupported(in, "a list of " + std::to_string(blocks.size()) + " targets");
    const uint32_t list = l.list(blocks);
    Op &op = l.emit_row(in);
    op.a = index;
    op.list = list;
    op.list_count = uint16_t(blocks.size());
}

void lower_call(Lowering &l, const Instruction &in) {
    FunctionLowering &f = core(l);
    Program &p = l.program();
    const auto &context = f.context();
    const Operand &callee = in.operands[1];
    const auto &results = in.operands[0].elements, &arguments = in.operands[2].elements;
    if (arguments.size() > 255) l.unsupported(in, "a call with so many arguments");
    const Program::Function *known = nullptr;
    uint32_t target = kNoSlot, pointer = kNoSlot;
    const SystemCall *system = nullptr;
    if (callee.kind == Operand::Kind::symbol) {
        if (const auto found = context.program_functions.find(callee.name); found != context.program_functions.end()) {
            target = found->second;
            known = &p.functions[target];
            if (known->parameters.size() != arguments.size() || known->returns.size() < results.size()) {
                l.unsupported(in, callee.name + " takes other arguments");
            }
        } else {
            system = find_system_call(callee.name);
            if (!system && callee.name.starts_with("__cudaCDP2"))
                l.unsupported(in, "this function of the device runtime (dynamic parallelism): " + callee.name);
            if (!system) l.unsupported(in, "a call of " + callee.name + ", which this module does not define");
            if (system->arguments != arguments.size()) l.unsupported(in, callee.name + " takes other arguments");
        }
    } else {
        pointer = l.source(callee, Type::u64);
    }
    std::vector<uint32_t> places;
    std::vector<CallPlace> returned;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const uint32_t wanted = known ? known->parameters[i].bytes : 8;
        const CallPlace place = place_of(l, in, arguments[i], wanted);
        if (place.bytes < (known ? known->parameters[i].bytes : system ? system->argument_bytes[i] : 0)) {
            l.unsupported(in, "argument " + std::to_string(i + 1) + " is too small");
        }
        if (place.operand) {
            const uint32_t slot = l.source(*place.operand, type_of_bytes(l, in, place.bytes));
            const uint32_t base = f.frame_base();
            Op &op = l.emit(in, exec_store_argument, OpClass::store_param);
            op.a = slot;
            op.b = base;
            op.imm = place.offset;
            op.extra = place.bytes;
        }
        places.push_back(place.offset);
        places.push_back(place.bytes);
    }
    for (size_t i = 0; i < results.size(); ++i) {
        returned.push_back(place_of(l, in, results[i], known ? known->returns[i].bytes : 8));
        places.push_back(returned.back().offset);
        places.push_back(returned.back().bytes);
    }
    const uint32_t base = f.frame_base();
    const uint32_t list = l.list(places);
    Op &op = l.emit(in, system ? system->run : exec_nothing, OpClass::control);
    op.flow = !system ? Flow::call : system->ordered ? Flow::ordered : Flow::yield;
    op.a = pointer;
    op.b = base;
    op.target = target;
    op.list = list;
    op.list_count = uint16_t(arguments.size());
    op.extra = uint32_t(results.size());  // their places stand behind the arguments
    for (size_t i = 0; i < results.size(); ++i) {
        const CallPlace &place = returned[i];
        if (!place.operand || place.operand->kind == Operand::Kind::sink) continue;
        const uint32_t slot = l.destination(*place.operand, type_of_bytes(l, in, place.bytes));
        Op &load = l.emit(in, exec_load_argument, OpClass::load_param);
        load.dst = slot;
        load.b = base;
        load.imm = place.offset;
        load.extra = place.bytes;
    }
}

void lower_nanosleep(Lowering &l, const Instruction &in) {
    l.source(in.operands[0], Type::u32);
    l.emit_row(in);
}

void lower_griddepcontrol(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    if (in.has("wait")) op.fn = exec_wait_for_launches;
}

constexpr InstructionRow kRows[] = {
    // Control flow
    {"bra{.uni}", "label", OpClass::control, Flow::branch, exec_nothing, lower_bra},
    {"brx.idx{.uni}", "a, label", OpClass::control, Flow::indirect, exec_nothing, lower_brx},
    {"call{.uni}", "call", OpClass::control, Flow::call, exec_nothing, lower_call, passes_call},
    {"ret{.uni}", "", OpClass::control, Flow::ret, exec_nothing, lower_plain},
    {"exit", "", OpClass::control, Flow::exit, exec_nothing, lower_plain},
    // Nothing need follow a trap, not even in the array of ops: it ends a run of straight-line ops.
    {"trap", "", OpClass::control, Flow::yield, exec_trap, lower_plain},
    {"brkpt", "", OpClass::control, Flow::yield, exec_trap, lower_plain},
    {"nanosleep.u32", "a", OpClass::other, Flow::yield, exec_nothing, lower_nanosleep},
    // Hints to the hardware that change no result: the profiler's events, dependent launches (a launch begins here when
    // the one before it has ended).
    {"pmevent{.mask}", "i", OpClass::control, Flow::straight, exec_nothing, lower_plain},
    {"griddepcontrol.{launch_dependents,wait}", "", OpClass::control, Flow::straight, exec_let_dependents_start,
     lower_griddepcontrol},
};

}  // namespace

std::span<const InstructionRow> control_rows() {
    return kRows;
}

}  // namespace warpsim
