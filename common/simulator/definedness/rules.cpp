#include "definedness/rules.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/op_formats.h"
#include "definedness/linear.h"

namespace warpsim {
namespace {

template <class F>
void for_each_lane(uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(std::countr_zero(lanes)));
}

const OperandSlot *operand_at(const Operands &operands, const DataFlow &flow, uint32_t slot) {
    const OperandSlot *end = operands.reads + flow.reads;
    const OperandSlot *found =
        std::find_if(operands.reads, end, [&](const OperandSlot &read) { return read.slot == slot; });
    return found == end ? nullptr : found;
}

// bits(lane, half): undefined bits of what that lane writes, for each lane of exec.
template <class Bits>
void write_bits(Warp &w, const OperandSlot &to, Bits bits, const LaneOrigins &origins) {
    const unsigned halves = to.bytes == 16 ? 2 : 1;
    for_each_lane(w.exec, [&](unsigned lane) {
        for (unsigned half = 0; half < halves; ++half)
            RegisterShadow::put(w.undefined->bits(), to, lane, bits(lane, half), half);
    });
    set_origins(*w.undefined, to, w.exec, origins);
}

bool packs_halves(const Op &op, const Operands &operands, const DataFlow &flow) {
    return op.cls == OpClass::fp16 && std::all_of(operands.reads, operands.reads + flow.reads + flow.writes,
                                                  [](const OperandSlot &o) { return o.bytes == 4; });
}

}  // namespace

uint32_t undefined_reads(const Warp &w, const DataFlow &flow) {
    const Operands operands(w, flow);
    uint32_t lanes = flow.takes_carry ? w.undefined->carry : 0;
    for (unsigned i = 0; i < flow.reads; ++i) lanes |= w.undefined->undefined(operands.reads[i]);
    return lanes;
}

LaneOrigins read_origins(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes, bool named) {
    const Operands operands(w, flow);
    LaneOrigins origins{};
    uint32_t left = lanes;
    for (unsigned i = 0; i < flow.reads; ++i) {
        const uint32_t here = w.undefined->undefined(operands.reads[i]) & left;
        if (!here) continue;
        const uint32_t *from = w.undefined->origins(operands.reads[i].slot);
        for_each_lane(here, [&](unsigned lane) { origins[lane] = from[lane]; });
        left &= ~here;
    }
    if (!named) return origins;
    for_each_lane(lanes, [&](unsigned lane) {
        origins[lane] = origins[lane] == Definedness::kNoOrigin
                            ? w.block->definedness->origin(Definedness::Source::variable, w, op, lane, 0)
                            : origin_id(origins[lane]);
    });
    return origins;
}

void set_origins(RegisterShadow &shadow, const OperandSlot &to, uint32_t lanes, const LaneOrigins &origins) {
    uint32_t *const slot = shadow.origins(to.slot);
    if (lanes == kAllLanes)
        std::copy(origins.begin(), origins.end(), slot);
    else
        for_each_lane(lanes, [&](unsigned lane) { slot[lane] = origins[lane]; });
}

void operand_matters(Warp &w, const Op &op, OperandSlot operand, uint32_t lanes, Use use) {
    lanes &= w.undefined->undefined(operand);
    if (!lanes) return;
    const unsigned lane = unsigned(std::countr_zero(lanes));
    w.block->definedness->matters(w, op, lane, w.undefined->origins(operand.slot)[lane], use);
}

void passes_any(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const Operands operands(w, flow);
    if (!flow.writes) {
        for (unsigned i = 0; i < flow.reads; ++i) operand_matters(w, op, operands.reads[i], lanes, Use::input);
        return;
    }
    LaneOrigins origins = read_origins(w, op, flow, lanes);
    if (op.flow == Flow::warp_sync) {
        std::fill(origins.begin(), origins.end(), origins[size_t(std::countr_zero(lanes))]);
        lanes = w.exec;
    }
    if (flow.gives_carry) w.undefined->carry = (w.undefined->carry & ~w.exec) | lanes;
    std::array<uint64_t, kLanes> bits{};
    const bool halves = packs_halves(op, operands, flow);
    for_each_lane(lanes, [&](unsigned lane) {
        bits[lane] = ~uint64_t{0};
        if (!halves) return;
        uint64_t all = 0;
        for (unsigned i = 0; i < flow.reads; ++i)
            all |= RegisterShadow::get(w.undefined->bits(), operands.reads[i], lane);
        bits[lane] = (all & 0xffff ? 0xffffu : 0u) | (all >> 16 ? 0xffff0000u : 0u);
    });
    for (unsigned i = 0; i < flow.writes; ++i)
        write_bits(w, operands.writes[i], [&](unsigned lane, unsigned) { return bits[lane]; }, origins);
}

void passes_copies(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const Operands operands(w, flow);
    const bool whole = flow.writes == 1 && flow.reads == 1 && operands.reads[0].bytes == operands.writes[0].bytes;
    LaneOrigins origins = read_origins(w, op, flow, lanes, false);
    if (!whole)
        for (uint32_t &origin : origins) origin = origin_id(origin);
    std::byte *const regs = w.regs;
    w.regs = w.undefined->bits();
    op.fn(w, op);
    w.regs = regs;
    for (unsigned i = 0; i < flow.writes; ++i) set_origins(*w.undefined, operands.writes[i], lanes, origins);
}

namespace {

// The sum of some registers, each with a sign.
struct Term {
    uint32_t slot;
    bool negative;
};

// What one lane knows of such a sum: undefined bits, and where they came from. Names registers that nothing wrote.
struct LinearSum {
    uint64_t bits = 0;
    uint32_t id = Definedness::kNoOrigin, print = 0;
    bool linear = true;

    void add(Warp &w, const Op &op, unsigned lane, const Term &term, unsigned bytes) {
        const uint64_t undefined = RegisterShadow::get(w.undefined->bits(), {term.slot, bytes}, lane);
        if (!undefined) return;
        bits |= undefined;
        uint32_t &origin = w.undefined->origins(term.slot)[lane];
        if (origin == Definedness::kNoOrigin)
            origin = unknown(w.block->definedness->origin(Definedness::Source::variable, w, op, lane, 0), term.slot);
        if (id == Definedness::kNoOrigin) id = origin_id(origin);
        linear = linear && fingerprint(origin);
        print += term.negative ? -fingerprint(origin) : fingerprint(origin);
    }
    bool is_defined() const { return linear && !(print & kFingerprintMask); }
    uint32_t origin() const { return linear ? with_fingerprint(id, print & kFingerprintMask) : id; }
};

void pass_sum(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes, std::initializer_list<Term> terms) {
    const Operands operands(w, flow);
    const OperandSlot to = operands.writes[0];
    const bool alike = std::all_of(operands.reads, operands.reads + flow.reads,
                                   [&](const OperandSlot &read) { return read.bytes == to.bytes; });
    if (op.cls != OpClass::integer || !alike || flow.takes_carry || flow.gives_carry)
        return passes_any(w, op, flow, lanes);
    LaneOrigins origins{};
    std::array<uint64_t, kLanes> bits{};
    // Sums that saturate, or of packed halves, are other sums.
    const std::string_view text = w.block->program->debug[op.index].text;
    const bool exact = text.find(".sat") == text.npos && text.find("x2") == text.npos;
    for_each_lane(lanes & w.exec, [&](unsigned lane) {
        LinearSum sum{.linear = exact};
        for (const Term &term : terms) sum.add(w, op, lane, term, to.bytes);
        if (sum.is_defined()) return;
        origins[lane] = sum.origin();
        bits[lane] = sum.bits | -sum.bits;
    });
    write_bits(w, to, [&](unsigned lane, unsigned) { return bits[lane]; }, origins);
}

}  // namespace

void passes_sum(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    pass_sum(w, op, flow, lanes, {{op.a, false}, {op.b, false}});
}

void passes_difference(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    if (op.cls == OpClass::integer && op.a == op.b && !flow.takes_carry && !flow.gives_carry)
        return w.undefined->define(Operands(w, flow).writes[0], w.exec);
    pass_sum(w, op, flow, lanes, {{op.a, false}, {op.b, true}});
}

void passes_negation(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    pass_sum(w, op, flow, lanes, {{op.a, true}});
}

void passes_comparison(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const CompareOutput output = unpack<CompareOutput>(op.extra);
    const bool combined = flow.reads > 2 && op.c != kNoSlot;
    if (combined && output.combine != CompareOutput::Combine::lxor) {
        const uint32_t c = w.predicate(op.c) ^ (output.negate_c ? kAllLanes : 0);
        const uint32_t decided = (output.combine == CompareOutput::Combine::land ? ~c : c);
        const uint32_t known = decided & ~w.undefined->undefined({op.c, 0});
        lanes &= ~known;
    }
    const LaneOrigins origins = read_origins(w, op, flow, lanes);
    const Operands operands(w, flow);
    for (unsigned i = 0; i < flow.writes; ++i)
        write_bits(
            w, operands.writes[i],
            [&](unsigned lane, unsigned) { return lanes >> lane & 1 ? ~uint64_t{0} : uint64_t{0}; }, origins);
}

void passes_conversion(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    std::string_view text = w.block->program->debug[op.index].text;  // "cvt.u32.u16"
    bool integers = text.find(".sat") == text.npos && text.find(".pack") == text.npos;
    for (unsigned i = 0; i < 2; ++i) {
        const size_t dot = text.rfind('.');
        integers = integers && (text[dot + 1] == 'u' || text[dot + 1] == 's');
        text = text.substr(0, dot);
    }
    integers ? passes_moved(w, op, flow, lanes, kMovesA) : passes_any(w, op, flow, lanes);
}

void passes_table(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes, unsigned table) {
    const Operands operands(w, flow);
    const OperandSlot to = operands.writes[0];
    const LaneOrigins origins = read_origins(w, op, flow, lanes);
    const uint32_t slot[3] = {op.a, op.b, op.c};
    write_bits(
        w, to,
        [&](unsigned lane, unsigned half) {
            // Bits that may be 0 and that may be 1, of each operand and then of the result.
            uint64_t may[3][2];
            for (unsigned i = 0; i < 3; ++i) {
                const bool there = slot[i] != kNoSlot && operand_at(operands, flow, slot[i]);
                const OperandSlot from{slot[i], to.bytes};
                const uint64_t value = there ? RegisterShadow::get(w.regs, from, lane, half) : 0;
                const uint64_t undefined = there ? RegisterShadow::get(w.undefined->bits(), from, lane, half) : 0;
                may[i][0] = ~value | undefined;
                may[i][1] = value | undefined;
            }
            if (op.a == op.b && table == (kTableA ^ kTableB)) return uint64_t{0};
            uint64_t result[2] = {};
            for (unsigned k = 0; k < 8; ++k)
                result[table >> k & 1] |= may[0][k >> 2 & 1] & may[1][k >> 1 & 1] & may[2][k & 1];
            return result[0] & result[1];
        },
        origins);
}

void passes_lop3(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const Operands operands(w, flow);
    const LaneOrigins origins = read_origins(w, op, flow, lanes);
    passes_table(w, op, flow, lanes, unsigned(op.imm));
    const uint32_t unknown = (w.undefined->undefined(operands.writes[0]) & w.exec) |
                             (flow.reads > 3 ? w.undefined->undefined(operands.reads[3]) & w.exec : 0);
    for (unsigned i = 1; i < flow.writes; ++i)
        write_bits(w, operands.writes[i], [&](unsigned lane, unsigned) { return unknown >> lane & 1; }, origins);
}

void passes_moved(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes, unsigned moved) {
    const Operands operands(w, flow);
    constexpr unsigned kPlace = 512;  // the widest slot
    alignas(64) std::byte frame[5 * kPlace];
    Op copy = op;
    const LaneOrigins origins = read_origins(w, op, flow, lanes);
    uint32_t decided = 0;  // lanes in which an undefined operand decides what moves where
    const bool fourth = op.extra != kNoSlot && flow.reads > 3;
    uint32_t *const slots[4] = {&copy.a, &copy.b, &copy.c, fourth ? &copy.extra : nullptr};
    for (unsigned i = 0; i < 4; ++i) {
        const OperandSlot *operand = slots[i] ? operand_at(operands, flow, *slots[i]) : nullptr;
        if (!operand) continue;
        const bool bits = moved >> i & 1;
        const size_t bytes = operand->bytes ? operand->bytes * kLanes : sizeof(uint32_t);
        std::memcpy(frame + i * kPlace, (bits ? w.undefined->bits() : w.regs) + operand->slot, bytes);
        if (!bits) decided |= w.undefined->undefined(*operand);
        *slots[i] = i * kPlace;
    }
    const OperandSlot to = operands.writes[0];
    copy.dst = 4 * kPlace;
    std::byte *const regs = w.regs;
    w.regs = frame;
    op.fn(w, copy);
    w.regs = regs;
    const OperandSlot result{copy.dst, to.bytes};
    write_bits(
        w, to,
        [&](unsigned lane, unsigned half) {
            return decided >> lane & 1 ? ~uint64_t{0} : RegisterShadow::get(frame, result, lane, half);
        },
        origins);
}

void passes_nothing(Warp &w, const Op &, const DataFlow &flow, uint32_t) {
    const Operands operands(w, flow);
    for (unsigned i = 0; i < flow.writes; ++i) w.undefined->define(operands.writes[i], w.exec);
}

}  // namespace warpsim
