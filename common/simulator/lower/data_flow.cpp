// Which registers each op reads and writes, from what the lowering of its instruction asked for.
#include <algorithm>

#include "lower/function_lowering.h"

namespace warpsim {
namespace {

bool holds(const std::vector<OperandSlot> &slots, uint32_t slot) {
    return std::any_of(slots.begin(), slots.end(), [=](const OperandSlot &o) { return o.slot == slot; });
}

// The slots that an op's fields name, of an instruction that became several ops (core/op_formats.h).
std::vector<uint32_t> named_slots(const Program &program, const Op &op) {
    std::vector<uint32_t> slots{op.dst, op.a, op.b, op.c, op.member};
    if (op.cls == OpClass::control) return slots;  // the list is of places in memory
    const auto list = program.operand_list.begin() + op.list;
    slots.insert(slots.end(), list, list + op.list_count);
    return slots;
}

}  // namespace

void FunctionLowering::set_flow(const Op &op, DefinednessRule rule, std::initializer_list<OperandSlot> reads,
                                OperandSlot write) {
    Program &p = *context_.program;
    p.flows[op.index] = {rule, uint32_t(p.operands.size()), uint16_t(reads.size()), 1};
    p.operands.insert(p.operands.end(), reads);
    p.operands.push_back(write);
}

void FunctionLowering::set_flows(size_t first, const ptx::Instruction &in) {
    Program &p = *context_.program;
    std::vector<Op *> own;  // but for what the core put before them
    for (size_t i = first; i < p.ops.size(); ++i)
        if (!p.flows[i].rule) own.push_back(&p.ops[i]);
    std::vector<uint32_t> met;  // temporaries: the first op that names one writes it, others read it
    for (Op *op : own) {
        std::vector<OperandSlot> reads, writes;
        if (own.size() == 1) {
            reads = sources_;
            writes = destinations_;
        } else {
            const std::vector<uint32_t> slots = named_slots(p, *op);
            const auto named = [&](const OperandSlot &o) {
                return std::find(slots.begin(), slots.end(), o.slot) != slots.end();
            };
            std::copy_if(sources_.begin(), sources_.end(), std::back_inserter(reads), named);
            std::copy_if(destinations_.begin(), destinations_.end(), std::back_inserter(writes), named);
            for (const OperandSlot &temporary : temporaries_) {
                if (!named(temporary) || holds(reads, temporary.slot) || holds(writes, temporary.slot)) continue;
                const bool read = std::find(met.begin(), met.end(), temporary.slot) != met.end();
                (read ? reads : writes).push_back(temporary);
            }
            for (const OperandSlot &temporary : temporaries_)
                if (named(temporary)) met.push_back(temporary.slot);
        }
        DataFlow &flow = p.flows[op->index];
        flow.rule = row_->definedness;
        flow.first = uint32_t(p.operands.size());
        flow.reads = uint16_t(reads.size());
        flow.writes = uint16_t(writes.size());
        flow.takes_carry = in.opcode == "addc" || in.opcode == "subc" || in.opcode == "madc";
        flow.gives_carry = in.has("cc");
        p.operands.insert(p.operands.end(), reads.begin(), reads.end());
        p.operands.insert(p.operands.end(), writes.begin(), writes.end());
    }
}

}  // namespace warpsim
