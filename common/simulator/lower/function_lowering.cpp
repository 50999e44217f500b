// Runs through a function's blocks in layout order, lowers each instruction, and ties the blocks together.
#include "lower/function_lowering.h"

#include <algorithm>

#include "core/op_formats.h"
#include "core/warp.h"
#include "machine/core_ops.h"

namespace warpsim {

namespace {

constexpr uint64_t kMostRegisterBytes = 4 << 20;  // of a warp; the largest kernels need a tenth of it

}  // namespace

std::string ProgramContext::describe(const ptx::Instruction &in) const {
    std::string text = in.text() + " (PTX line " + std::to_string(in.ptx_line);
    if (in.source.line) {
        const auto file = module->ast.files.find(in.source.file);
        std::string name = file == module->ast.files.end() ? "line " : file->second;
        name = name.substr(name.find_last_of('/') + 1);
        text += ", " + name + ":" + std::to_string(in.source.line);
    }
    return text + ")";
}

void FunctionLowering::lower_instruction(const ptx::Instruction &in) {
    current_ = &in;
    current_text_ = in.text();
    for (auto &[bytes, pool] : scratch_) pool.used = 0;
    for (auto *noted : {&sources_, &destinations_, &temporaries_}) noted->clear();
    if (in.guard >= 0) {
        const auto &registers = function_.registers;
        if (size_t(in.guard) >= registers.size() || registers[size_t(in.guard)].type != ptx::Type::pred) {
            unsupported(in, "the guard is no predicate");
        }
    }
    std::string why;
    std::vector<std::string> ordered;
    row_ = find_row(in, ordered, why);
    if (!row_) unsupported(in, why);
    auto &ops = context_.program->ops;
    note_wgmma_registers(in);
    const size_t first = ops.size();
    if (ordered == in.modifiers) {
        row_->lower(*this, in);
    } else {
        ptx::Instruction in_order = in;
        in_order.modifiers = std::move(ordered);
        row_->lower(*this, in_order);
    }
    set_flows(first, in);
    if (ops.size() > first && ops.back().flow == Flow::warpgroup && ops.back().cls == OpClass::tensor)
        ops.back().target = uint32_t(&in - function_.body.data());
    // The last op of several stands for the instruction in the counts.
    auto &debug = context_.program->debug;
    bool counted = false;
    for (size_t i = ops.size(); i-- > first;) {
        debug[i].counted = debug[i].counted && !counted;
        counted = counted || debug[i].counted;
        if (ops[i].flow == Flow::straight && ops[i].guard != kNoSlot) ops[i].flow = Flow::guarded;
    }
}

// Puts a look at the wgmma in flight before an instruction that may touch their registers.
void FunctionLowering::note_wgmma_registers(const ptx::Instruction &in) {
    const WgmmaFlow::Finding *found = wgmma_.find(uint32_t(&in - function_.body.data()));
    if (!found) return;
    const std::string name = (found->is_a ? "A's register " : "D's register ") + function_.registers[found->reg].name;
    std::string text;
    if (!found->unfenced) {
        text = context_.describe(in) + (found->written ? " writes " : " reads ") + name + " while the " +
               context_.describe(function_.body[found->wgmma]) +
               " is in flight: no wgmma.wait_group has covered it yet. ptxas repairs this by making the wgmma wait "
               "one by one, which costs the overlap";
    } else {
        text =
            context_.describe(in) + " uses " + name + " with no wgmma.fence behind " +
            (found->wgmma == WgmmaFlow::kStart ? "the kernel's start"
                                               : "its access by " + context_.describe(function_.body[found->wgmma])) +
            ": a warp's accesses of D and of A in registers must be fenced before a wgmma uses them. ptxas puts the "
            "fence in";
    }
    Op &op = emit(in, exec_wgmma_touch, OpClass::control);
    op.extra = uint32_t(found->unfenced ? WgmmaTouch::unfenced : WgmmaTouch::in_flight);
    op.target = found->wgmma;
    op.imm = int64_t(context_.program->notes.size());
    if (op.guard != kNoSlot) op.flow = Flow::guarded;
    context_.program->debug.back().counted = false;
    context_.program->flows.back().rule = passes_nothing;
    context_.program->notes.push_back(std::move(text));
}

void FunctionLowering::run() {
    if (function_.registers.size() * uint64_t{512} > (1ull << 30))
        throw Unsupported(function_.name + " has too many registers");
    layout_ = lay_out(function_);
    allocation_ = allocate_registers(function_, layout_);
    wgmma_.run(function_, layout_);
    // Dynamic memory alone has the block's bounds. A launch may bring some that the kernel has no name for.
    const auto &variables = context_.program->shared_variables;
    const bool dynamic_alone = variables.size() == 1 && !variables[0].bytes && !context_.program->reserved_shared;
    if (!variables.empty() && !dynamic_alone) shared_pointers_.run(function_, context_.shared_numbers);
    if (allocation_.bytes > kMostRegisterBytes) throw Unsupported(function_.name + " needs too many registers");
    auto &ops = context_.program->ops;
    first_op_ = uint32_t(ops.size());
    block_start_.assign(layout_.blocks.size(), 0);
    std::vector<uint32_t> entering(layout_.blocks.size(), 0);
    for (uint32_t b : layout_.order) {
        for (uint32_t s : layout_.blocks[b].successors) ++entering[layout_.destination(b, s)];
        if (layout_.blocks[b].latch_to != kNoBlock) ++entering[layout_.blocks[b].latch_to];
    }
    Handler const nothing = exec_nothing;
    uint32_t falling_from = kNoBlock;  // the block just laid out, if control falls out of its end into the next one
    for (size_t i = 0; i < layout_.order.size(); ++i) {
        const uint32_t b = layout_.order[i];
        const BasicBlock block = layout_.blocks[b];
        current_block_ = b;
        current_ = nullptr;
        const bool after_straight = falling_from != kNoBlock && ops.size() > first_op_ &&
                                    (ops.back().flow == Flow::straight || ops.back().flow == Flow::guarded);
        if (after_straight && (entering[b] > 1 || block.latch_to != kNoBlock))
            append(nothing, OpClass::control, Flow::join, false);
        block_start_[b] = uint32_t(ops.size());
        for (uint32_t n = block.first; n < block.last; ++n) lower_instruction(function_.body[n]);
        current_ = nullptr;
        falling_from = kNoBlock;
        const uint32_t next = i + 1 < layout_.order.size() ? layout_.order[i + 1] : kNoBlock;
        uint32_t to = kNoBlock;
        if (block.latch_to != kNoBlock) {
            to = block.latch_to;
        } else if (block.fall_through != kNoBlock) {
            to = layout_.destination(b, block.fall_through);
        } else if (block.last == block.first || !is_terminator(function_.body[block.last - 1]) ||
                   function_.body[block.last - 1].guard >= 0) {
            append(nothing, OpClass::control, Flow::ret, false);
        }
        if (to == kNoBlock) continue;
        if (to == next) {
            falling_from = b;
        } else {
            append(nothing, OpClass::control, Flow::jump, false).target = to;
        }
    }
    finish_ops();
}

void FunctionLowering::finish_ops() {
    Program &p = *context_.program;
    for (size_t i = first_op_; i < p.ops.size(); ++i) {
        Op &op = p.ops[i];
        if (op.flow == Flow::branch || op.flow == Flow::jump) op.target = block_start_[op.target];
        if (op.flow == Flow::indirect) {
            for (uint32_t k = 0; k < op.list_count; ++k)
                p.operand_list[op.list + k] = block_start_[p.operand_list[op.list + k]];
        }
    }
    Program::Function &out = record();
    out.entry = layout_.order.empty() ? first_op_ : block_start_[layout_.order[0]];
    out.constants_offset = allocation_.bytes;
    out.constants = image_;
    out.frame_bytes = allocation_.bytes + uint32_t(image_.size());
    out.local_bytes = (local_end_ + 15) / 16 * 16;
    out.zero_frame = allocation_.reads_before_writes;
    for (uint32_t r : allocation_.unwritten) {
        const ptx::Register &reg = function_.registers[r];
        const uint32_t bytes = ptx::type_bytes(reg.type);
        for (int i = 0; i < std::max(1, reg.vector); ++i)
            out.unwritten.push_back({allocation_.slot[r] + slot_bytes(bytes) * uint32_t(i), bytes});
    }
    p.registers = std::max(p.registers, allocation_.most_live_words);
}

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
