// Operands, registers, constants and symbols: what families ask for while they lower an instruction.
#include "lower/lowering.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/round_up.h"
#include "core/warp.h"
#include "lower/function_lowering.h"
#include "machine/cluster.h"
#include "machine/core_ops.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

using ptx::Operand;
using ptx::Type;

constexpr uint64_t kMostConstantBytes = 4 << 20;
constexpr uint64_t kMostLocalBytes = 512 << 10;  // as on the devices

void broadcast(std::byte *to, uint64_t bits, unsigned bytes) {
    if (bytes == 0) {
        const uint32_t all = bits & 1 ? kAllLanes : 0;
        std::memcpy(to, &all, sizeof all);
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (bytes == 16) {  // low words first, then high words, which are 0
            std::memcpy(to + lane * 8, &bits, 8);
        } else {
            std::memcpy(to + lane * bytes, &bits, bytes);
        }
    }
}

}  // namespace

FunctionLowering::FunctionLowering(ProgramContext &context, const ptx::Function &function, uint32_t index)
    : context_(context), function_(function), index_(index), is_kernel_(index == 0) {}

void FunctionLowering::place_variables() {
    Program::Function &out = record();
    out.name = function_.name;
    uint64_t end = 0;
    const auto place = [&](const ptx::Variable &v) {
        end = round_up(end, std::max(1u, v.align));
        locals_[v.name] = {uint32_t(end), v.bytes};
        end += v.bytes;
        if (end > kMostLocalBytes || v.align > 4096) {
            throw Unsupported(function_.name + ": " + v.name + " needs more local memory than a thread can have");
        }
        return Program::Function::Place{uint32_t(end - v.bytes), uint32_t(v.bytes)};
    };
    if (is_kernel_) {
        for (size_t i = 0; i < function_.parameters.size(); ++i) {
            kernel_parameters_[function_.parameters[i].name] = {context_.program->parameters[i].offset,
                                                                function_.parameters[i].bytes};
        }
    } else {
        for (const ptx::Variable &v : function_.returns) out.returns.push_back(place(v));
        for (const ptx::Variable &v : function_.parameters) out.parameters.push_back(place(v));
    }
    for (const ptx::Variable &v : function_.variables) {
        if (v.space == ptx::Space::local || v.space == ptx::Space::param) place(v);
    }
    local_end_ = uint32_t(end);
}

uint32_t FunctionLowering::local_temporary(uint32_t bytes) {
    const uint32_t offset = uint32_t(round_up(local_end_, 16));
    local_end_ = offset + bytes;
    return offset;
}

bool FunctionLowering::local_place(const std::string &name, uint32_t &offset, uint64_t &bytes) const {
    const auto found = locals_.find(name);
    if (found == locals_.end()) return false;
    offset = found->second.offset;
    bytes = found->second.bytes;
    return true;
}

uint32_t FunctionLowering::frame_base() {
    return is_kernel_ ? kNoSlot : special(Special::frame_base, 4);
}

uint32_t FunctionLowering::tail(uint32_t bytes) {
    const uint32_t offset = uint32_t(image_.size());
    image_.resize(offset + round_up(bytes, 64));
    if (image_.size() > kMostConstantBytes) throw Unsupported(function_.name + " has too many constants");
    return allocation_.bytes + offset;
}

const Operand &FunctionLowering::checked_register(const Operand &operand) const {
    if (operand.index >= function_.registers.size() || allocation_.slot[operand.index] == kNoSlot) {
        throw Unsupported("an operand of " + context_.describe(*current_) + " is not understood");
    }
    return operand;
}

unsigned FunctionLowering::register_bytes(const Operand &operand) const {
    return operand.kind == Operand::Kind::reg ? ptx::type_bytes(function_.registers[operand.index].type) : 0;
}

uint32_t FunctionLowering::source(const Operand &operand, Type type) {
    const uint32_t slot = find_source(operand, type);
    sources_.push_back({slot, ptx::type_bytes(type)});
    return slot;
}

uint32_t FunctionLowering::find_source(const Operand &operand, Type type) {
    const unsigned bytes = ptx::type_bytes(type);
    switch (operand.kind) {
        case Operand::Kind::reg: {
            const ptx::Register &reg = function_.registers[checked_register(operand).index];
            const unsigned have = ptx::type_bytes(reg.type);
            uint32_t slot = allocation_.slot[operand.index];
            if (operand.component >= 0) {
                if (operand.component >= reg.vector) unsupported(*current_, "no such component of " + reg.name);
                slot += slot_bytes(have) * uint32_t(operand.component);
            }
            if ((have == 0) != (bytes == 0)) {
                unsupported(*current_,
                            reg.name + " is ." + ptx::type_name(reg.type) + ", not ." + ptx::type_name(type));
            }
            if (operand.negated) {
                if (have != 0) unsupported(*current_, "only a predicate can be negated");
                const uint32_t slot_not = scratch_bytes(0);
                Op &op = append(exec_not_predicate, OpClass::predicate, Flow::straight, false);
                op.dst = slot_not;
                op.a = slot;
                set_flow(op, passes_logic<kTableNotA>, {{slot, 0}}, {slot_not, 0});
                return slot_not;
            }
            if (have == bytes) return slot;
            if (have < bytes) {
                unsupported(*current_, reg.name + " is ." + ptx::type_name(reg.type) + ", too narrow for ." +
                                           ptx::type_name(type));
            }
            return copy_low_bytes(slot, have, bytes);
        }
        case Operand::Kind::integer:
            return constant(uint64_t(operand.integer), type);
        case Operand::Kind::real: {
            uint64_t bits = operand.real_bits;
            if (operand.type == Type::f64 && bytes == 4) {
                bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
            } else if (operand.type == Type::f32 && bytes == 8) {
                bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(bits))));
            }
            return constant(bits, type);
        }
        case Operand::Kind::special: {
            const Special which = special_from_name(operand.name);
            if (which == Special::unknown) unsupported(*current_, "special register " + operand.name);
            if ((bytes == 0) != (special_bytes(which) == 0))
                unsupported(*current_, operand.name + (bytes ? " is a predicate" : " is no predicate"));
            if (operand.negated) unsupported(*current_, "only a register can be negated");
            if (!is_clock(which)) return special(which, bytes);
            const unsigned natural = special_bytes(which);
            const uint32_t slot = scratch_bytes(natural);
            Op &op = append(exec_read_clock, OpClass::move, Flow::yield, false);
            op.dst = slot;
            op.imm = int64_t(which);
            set_flow(op, passes_nothing, {}, {slot, natural});
            if (natural < bytes) unsupported(*current_, operand.name + " is narrower than ." + ptx::type_name(type));
            return natural == bytes ? slot : copy_low_bytes(slot, natural, bytes);
        }
        case Operand::Kind::symbol: {
            const Symbol s = symbol(operand.name);
            if (!s.found) unsupported(*current_, "unknown symbol " + operand.name);
            const uint64_t value = s.address + uint64_t(operand.offset);
            if (s.space != ptx::Space::local || is_kernel_) return constant(value, type);
            if (bytes != 4 && bytes != 8) unsupported(*current_, "an address is 32 or 64 bits wide");
            const uint32_t slot = scratch_bytes(bytes);
            Op &op = append(bytes == 8 ? exec_local_address<uint64_t> : exec_local_address<uint32_t>, OpClass::integer,
                            Flow::straight, false);
            op.dst = slot;
            op.imm = int64_t(value);
            set_flow(op, passes_nothing, {}, {slot, bytes});
            const uint32_t base = frame_base();
            context_.program->ops.back().a = base;
            return slot;
        }
        default:
            unsupported(*current_, "an operand is of the wrong kind");
    }
}

uint32_t FunctionLowering::destination(const Operand &operand, Type type) {
    if (operand.kind == Operand::Kind::sink) {
        const uint32_t slot = scratch_bytes(ptx::type_bytes(type));
        destinations_.push_back({slot, ptx::type_bytes(type)});
        return slot;
    }
    if (operand.kind != Operand::Kind::reg) unsupported(*current_, "the destination is no register");
    const ptx::Register &reg = function_.registers[checked_register(operand).index];
    const unsigned have = ptx::type_bytes(reg.type), bytes = ptx::type_bytes(type);
    if ((have == 0) != (bytes == 0) || have < bytes) {
        unsupported(*current_,
                    reg.name + " is ." + ptx::type_name(reg.type) + " and cannot hold ." + ptx::type_name(type));
    }
    uint32_t slot = allocation_.slot[operand.index];
    if (operand.component >= 0) {
        if (operand.component >= reg.vector) unsupported(*current_, "no such component of " + reg.name);
        slot += slot_bytes(have) * uint32_t(operand.component);
    }
    destinations_.push_back({slot, bytes});
    return slot;
}

uint32_t FunctionLowering::scratch(Type type) {
    const uint32_t slot = scratch_bytes(ptx::type_bytes(type));
    temporaries_.push_back({slot, ptx::type_bytes(type)});
    return slot;
}

uint32_t FunctionLowering::scratch_bytes(unsigned bytes) {
    Pool &pool = scratch_[slot_bytes(bytes)];
    if (pool.used == pool.slots.size()) pool.slots.push_back(tail(slot_bytes(bytes)));
    return pool.slots[pool.used++];
}

uint32_t FunctionLowering::constant(uint64_t bits, Type type) {
    const unsigned bytes = ptx::type_bytes(type);
    if (bytes == 0) bits &= 1;
    if (bytes > 0 && bytes < 8) bits &= (1ull << (8 * bytes)) - 1;
    const auto key = std::make_pair(bits, bytes);
    const auto found = constants_.find(key);
    if (found != constants_.end()) return found->second;
    const uint32_t slot = tail(slot_bytes(bytes));
    broadcast(image_.data() + (slot - allocation_.bytes), bits, bytes);
    return constants_[key] = slot;
}

uint32_t FunctionLowering::special(Special which, unsigned bytes) {
    if (which == Special::warp_size)
        return constant(kLanes, bytes == 8 ? Type::b64 : bytes == 2 ? Type::b16 : Type::b32);
    const auto key = std::make_pair(uint8_t(which), bytes);
    const auto found = specials_.find(key);
    if (found != specials_.end()) return found->second;
    const uint32_t slot = tail(slot_bytes(bytes));
    record().specials.push_back({uint8_t(which), uint8_t(bytes), slot});
    return specials_[key] = slot;
}

uint32_t FunctionLowering::copy_low_bytes(uint32_t slot, unsigned from_bytes, unsigned to_bytes) {
    const uint32_t copy = scratch_bytes(to_bytes);
    Op &op = append(exec_copy_low_bytes, OpClass::move, Flow::straight, false);
    op.dst = copy;
    op.a = slot;
    op.imm = from_bytes == 16 ? 8 : from_bytes;  // the low words of 128-bit lanes lie side by side
    op.extra = to_bytes;
    set_flow(op, passes_copies, {{slot, from_bytes}}, {copy, to_bytes});
    return copy;
}

Op &FunctionLowering::append(Handler fn, OpClass cls, Flow flow, bool counted) {
    Program &p = *context_.program;
    Op op;
    op.fn = fn;
    op.cls = cls;
    op.flow = flow;
    op.index = uint32_t(p.ops.size());
    p.ops.push_back(op);
    OpDebug debug;
    if (current_) {
        debug.source = current_->source;
        debug.nearest = current_->nearest;
        debug.ptx_line = current_->ptx_line;
        debug.text = current_text_;
    } else if (p.ops.size() > first_op_ + 1) {  // what the layout adds belongs to the line before it
        debug.source = p.debug.back().source;
        debug.nearest = p.debug.back().nearest;
        debug.ptx_line = p.debug.back().ptx_line;
    }
    debug.counted = counted;
    p.debug.push_back(std::move(debug));
    p.flows.emplace_back();
    return p.ops.back();
}

Op &FunctionLowering::emit(const ptx::Instruction &in, Handler fn, OpClass cls) {
    Op &op = append(fn, cls, Flow::straight, true);
    if (in.guard >= 0) {
        op.guard = allocation_.slot[size_t(in.guard)];
        op.guard_xor = in.guard_negated ? kAllLanes : 0;
    }
    return op;
}

Op &FunctionLowering::emit_row(const ptx::Instruction &in, Handler fn) {
    Op &op = emit(in, fn ? fn : row_->handler, row_->cls);
    op.flow = row_->flow;
    return op;
}

uint32_t FunctionLowering::list(const std::vector<uint32_t> &slots) {
    auto &all = context_.program->operand_list;
    const uint32_t first = uint32_t(all.size());
    all.insert(all.end(), slots.begin(), slots.end());
    return first;
}

Lowering::Symbol FunctionLowering::symbol(const std::string &name) {
    uint32_t offset = 0;
    uint64_t bytes = 0;
    if (local_place(name, offset, bytes)) return {ptx::Space::local, offset, bytes, true, false};
    if (const auto p = kernel_parameters_.find(name); p != kernel_parameters_.end()) {
        return {ptx::Space::param, p->second.first, p->second.second, true, true};
    }
    if (const auto s = context_.shared.find(name); s != context_.shared.end()) {
        return {ptx::Space::shared, s->second.offset, s->second.bytes, true, false};
    }
    if (const auto g = context_.module->globals.find(name); g != context_.module->globals.end()) {
        const AllocationView *view = context_.module->memory->find(g->second);
        const bool constant = view && view->kind == MemoryKind::module_const;
        return {constant ? ptx::Space::const_ : ptx::Space::global, g->second, context_.module->global_bytes[name],
                true, false};
    }
    if (const auto f = context_.definitions.find(name); f != context_.definitions.end()) {
        return {ptx::Space::generic, function_handle(f->second), 0, true, false};
    }
    return {ptx::Space::generic, 0, 0, false, false};
}

Lowering::Address FunctionLowering::address(const Operand &operand) {
    const Operand *base = &operand;
    int64_t offset = 0;
    if (operand.kind == Operand::Kind::address) {
        if (operand.elements.empty()) unsupported(*current_, "an address without a base");
        base = &operand.elements[0];
        offset = operand.offset;
    }
    switch (base->kind) {
        case Operand::Kind::reg: {
            const unsigned bytes = register_bytes(*base);
            if (bytes != 4 && bytes != 8) unsupported(*current_, "an address is 32 or 64 bits wide");
            // A register that ld.param uses holds the address of a parameter of the function it is in.
            return {source(*base, bytes == 8 ? Type::b64 : Type::b32), bytes, offset, ptx::Space::generic, is_kernel_};
        }
        case Operand::Kind::integer:
            return {kNoSlot, 0, base->integer + offset, ptx::Space::generic, false};
        case Operand::Kind::symbol: {
            const Symbol s = symbol(base->name);
            if (!s.found) unsupported(*current_, "unknown symbol " + base->name);
            const bool in_frame = s.space == ptx::Space::local && !is_kernel_;
            return {in_frame ? frame_base() : kNoSlot, in_frame ? 4u : 0u, int64_t(s.address) + base->offset + offset,
                    s.space, s.kernel_parameter};
        }
        default:
            unsupported(*current_, "an address is of the wrong kind");
    }
}

uint32_t FunctionLowering::shared_variable(const Operand &address) {
    return shared_pointers_.variable(address) + 1;  // kNone + 1 is 0
}

bool FunctionLowering::in_waiting_loop() const {
    const auto &body = function_.body;
    const size_t here = size_t(current_ - body.data());
    const auto acts = [](const ptx::Instruction &in) {
        return in.opcode == "st" || in.opcode == "atom" || in.opcode == "red" || in.opcode == "bar" ||
               in.opcode == "barrier";
    };
    for (size_t end = here; end < body.size(); ++end) {
        if (acts(body[end])) return false;
        if (body[end].opcode != "bra" || body[end].operands.empty() ||
            body[end].operands[0].kind != Operand::Kind::label)
            continue;
        const size_t start = function_.labels[body[end].operands[0].index].position;
        if (start <= here) return std::none_of(body.begin() + start, body.begin() + here, acts);
    }
    return false;
}

bool FunctionLowering::is_read(const Operand &destination) {
    if (destination.kind != Operand::Kind::reg) return false;
    if (reads_.empty()) {
        reads_.assign(function_.registers.size(), 0);
        std::vector<RegisterUse> uses;
        for (const ptx::Instruction &in : function_.body) {
            uses.clear();
            register_uses(in, uses);
            for (const RegisterUse &use : uses) reads_[use.reg] += !use.written;
        }
        for (const ptx::Instruction &in : function_.body) {
            const bool selects = in.opcode == "selp" && in.operands.size() == 4 && in.guard < 0 &&
                                 in.operands[0].kind == Operand::Kind::reg && in.operands[3].kind == Operand::Kind::reg;
            if (selects && !reads_[in.operands[0].index]) --reads_[in.operands[3].index];
        }
    }
    return reads_[destination.index] != 0;
}

uint32_t FunctionLowering::block_at(uint32_t label) const {
    return layout_.destination(current_block_, layout_.block_at_label[label]);
}

void FunctionLowering::unsupported(const ptx::Instruction &in, const std::string &why) {
    throw Unsupported(context_.describe(in) + " is not supported" + (why.empty() ? "" : ": " + why));
}

void lower_plain(Lowering &l, const ptx::Instruction &in) {
    l.emit_row(in);
}

bool may_be_remote(Lowering &l, const ptx::Instruction &in, bool generic) {
    return l.program().maps_addresses && (generic || in.has("shared::cluster"));
}

void make_remote(Lowering &l, Op &op, uint32_t scratch, bool generic) {
    if (op.flow == Flow::straight) op.flow = Flow::yield;
    Op there = op;
    there.a = scratch;
    there.imm = 0;
    there.extra = (op.extra & ~kBase32) | (generic ? 0 : kBase32);
    op.target = uint32_t(l.program().remote_ops.size());
    l.program().remote_ops.push_back(there);
    op.fn = exec_remote;
    if (generic) op.extra |= kRemoteGeneric;
}

void add_remote_op(Lowering &l, Op &op, Handler handler, uint32_t to, uint32_t list, uint32_t extra) {
    Op there = op;
    there.fn = handler;
    there.a = to;
    there.imm = 0;
    there.list = list;
    there.extra = extra;
    op.target = uint32_t(l.program().remote_ops.size());
    l.program().remote_ops.push_back(there);
}

}  // namespace warpsim
