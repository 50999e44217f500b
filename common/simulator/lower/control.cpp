// Control flow, calls, block barriers and fences.

#include <algorithm>

#include "core/op_formats.h"
#include "core/warp.h"
#include "exec/core_ops.h"
#include "exec/sync_ops.h"
#include "exec/system_calls.h"
#include "lower/families.h"
#include "lower/function_lowering.h"

namespace warpsim {

namespace {

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

}  // namespace

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

void lower_warp_barrier(Lowering &l, const Instruction &in) {
    const uint32_t member = l.source(in.operands[0], Type::b32);
    l.emit_row(in).member = member;
}

// bar.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, {!}c; bar.red.op.pred p, a{, b}, {!}c; and barrier.*
void lower_barrier(Lowering &l, const Instruction &in) {
    BarrierForm form;
    form.aligned = in.opcode == "bar" || in.has("aligned");
    const bool red = in.has("red");
    if (red)
        form.kind = in.has("popc") ? BarrierKind::red_popc : in.has("and") ? BarrierKind::red_and : BarrierKind::red_or;
    else if (in.has("arrive"))
        form.kind = BarrierKind::arrive;
    const size_t first = red ? 1 : 0, last = in.operands.size() - (red ? 1 : 0);
    const Operand &name = in.operands[first];
    if (name.kind == Operand::Kind::integer && (name.integer < 0 || name.integer > 15))
        l.unsupported(in, "a barrier's number is 0 to 15, not " + std::to_string(name.integer));
    const uint32_t number = l.source(name, Type::u32);
    const uint32_t count = last - first == 2 ? l.source(in.operands[first + 1], Type::u32) : kNoSlot;
    const uint32_t value = red ? l.source(in.operands.back(), Type::pred) : kNoSlot;
    const uint32_t dst =
        red ? l.destination(in.operands[0], form.kind == BarrierKind::red_popc ? Type::u32 : Type::pred) : kNoSlot;
    Op &op = l.emit_row(in);
    op.a = number;
    op.b = count;
    op.c = value;
    op.dst = dst;
    op.extra = pack<uint32_t>(form);
}

void lower_nanosleep(Lowering &l, const Instruction &in) {
    l.source(in.operands[0], Type::u32);
    l.emit_row(in);
}

void lower_griddepcontrol(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    if (in.has("wait")) op.fn = exec_wait_for_launches;
}

void lower_plain(Lowering &l, const Instruction &in) {
    l.emit_row(in);
}

}  // namespace warpsim
