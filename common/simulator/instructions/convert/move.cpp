// mov, packing and unpacking, prmt, selp, slct, cvta, isspacep.
#include <string_view>

#include "core/op_formats.h"
#include "core/program.h"
#include "instructions/arithmetic/forms.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/convert/convert.h"
#include "instructions/rows.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

struct Identity {
    template <class T>
    T operator()(T a) const {
        return a;
    }
};
template <class T>
void move(Warp &w, const Op &op) {
    map1<Identity, T, T>(w, op);
}
// b128: the low words of all lanes, then the high words.
void move128(Warp &w, const Op &op) {
    for (unsigned half = 0; half < 2; ++half) {
        const uint64_t *a = w.lanes<uint64_t>(op.a) + half * kLanes;
        write_lanes<uint64_t>(w, op.dst + half * kLanes * sizeof(uint64_t), [=](unsigned i) { return a[i]; });
    }
}

struct PredicateAnd {
    uint32_t operator()(uint32_t a, uint32_t b) const { return a & b; }
};
struct PredicateOr {
    uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};
struct PredicateXor {
    uint32_t operator()(uint32_t a, uint32_t b) const { return a ^ b; }
};
template <class F>
void predicate2(Warp &w, const Op &op) {
    write_mask(w, op.dst, F{}(w.predicate(op.a), w.predicate(op.b)));
}
void predicate_move(Warp &w, const Op &op) {
    write_mask(w, op.dst, w.predicate(op.a));
}

template <class Whole, class Element, unsigned Count>
void pack(Warp &w, const Op &op) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const Element *e[Count];
    for (unsigned k = 0; k < Count; ++k) e[k] = w.lanes<Element>(slots[k]);
    const Element *e0 = e[0], *e1 = e[1], *e2 = e[Count > 2 ? 2 : 0], *e3 = e[Count > 2 ? 3 : 0];
    write_lanes<Whole>(w, op.dst, [=](unsigned i) {
        constexpr unsigned bits = 8 * sizeof(Element);
        Whole whole = Whole(e0[i]) | Whole(e1[i]) << bits;
        if constexpr (Count == 4) whole |= Whole(e2[i]) << (2 * bits) | Whole(e3[i]) << (3 * bits);
        return whole;
    });
}
template <class Whole, class Element, unsigned Count>
void unpack(Warp &w, const Op &op) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const Whole *a = w.lanes<Whole>(op.a);
    for (unsigned k = 0; k < Count; ++k) {
        if (slots[k] == kNoSlot) continue;
        const unsigned shift = 8 * unsigned(sizeof(Element)) * k;
        write_lanes<Element>(w, slots[k], [=](unsigned i) { return Element(a[i] >> shift); });
    }
}
// b128 of two b64 or four b32: each half is a 64-bit register of its own.
template <class Element, unsigned PerHalf>
void pack128(Warp &w, const Op &op) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    for (unsigned half = 0; half < 2; ++half) {
        const Element *low = w.lanes<Element>(slots[half * PerHalf]);
        const Element *high = w.lanes<Element>(slots[half * PerHalf + PerHalf - 1]);
        write_lanes<uint64_t>(w, op.dst + half * kLanes * sizeof(uint64_t), [=](unsigned i) {
            return PerHalf == 1 ? uint64_t(low[i]) : uint64_t(low[i]) | uint64_t(high[i]) << 32;
        });
    }
}
template <class Element, unsigned PerHalf>
void unpack128(Warp &w, const Op &op) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    for (unsigned k = 0; k < 2 * PerHalf; ++k) {
        if (slots[k] == kNoSlot) continue;
        const uint64_t *a = w.lanes<uint64_t>(op.a) + k / PerHalf * kLanes;
        const unsigned shift = 32 * (k % PerHalf);
        write_lanes<Element>(w, slots[k], [=](unsigned i) { return Element(a[i] >> shift); });
    }
}

template <class T>
void selp(Warp &w, const Op &op) {
    const T *a = w.lanes<T>(op.a), *b = w.lanes<T>(op.b);
    const uint32_t p = w.predicate(op.c);
    write_lanes<T>(w, op.dst, [=](unsigned i) { return p >> i & 1 ? a[i] : b[i]; });
}
// Zero counts as positive, NaN as negative.
template <bool Ftz>
struct Slct {
    template <class T, class C>
    T operator()(T a, T b, C c) const {
        return c >= C(0) ? a : b;
    }
    template <class T>
    T operator()(T a, T b, float c) const {
        return (Ftz ? flush_subnormal(c) : c) >= 0.0f ? a : b;
    }
};

// Byte k of b:a, or its sign in all bits where digit & 8.
uint32_t permuted_byte(uint64_t pair, uint32_t digit) {
    const uint32_t byte = uint32_t(pair >> (8 * (digit & 7))) & 0xff;
    return digit & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte;
}
struct Permute {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
        const uint64_t pair = uint64_t(b) << 32 | a;
        uint32_t result = 0;
        for (unsigned k = 0; k < 4; ++k) result |= permuted_byte(pair, selector >> (4 * k) & 15) << (8 * k);
        return result;
    }
};
// The named modes: which byte goes to place k (0 is the lowest) for selector s in 0..3.
struct Forward4 {
    unsigned operator()(unsigned s, unsigned k) const { return s + k; }
};
struct Backward4 {
    unsigned operator()(unsigned s, unsigned k) const { return (s + 8 - k) & 7; }
};
struct Replicate8 {
    unsigned operator()(unsigned s, unsigned) const { return s; }
};
struct ClampLeft {
    unsigned operator()(unsigned s, unsigned k) const { return k < s ? s : k; }
};
struct ClampRight {
    unsigned operator()(unsigned s, unsigned k) const { return k > s ? s : k; }
};
struct Replicate16 {
    unsigned operator()(unsigned s, unsigned k) const { return 2 * (s & 1) + (k & 1); }
};
template <class Place>
struct PermuteMode {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
        const uint64_t pair = uint64_t(b) << 32 | a;
        uint32_t result = 0;
        for (unsigned k = 0; k < 4; ++k) result |= permuted_byte(pair, Place{}(selector & 3, k)) << (8 * k);
        return result;
    }
};

template <class T>
void put_selections(AluForms &forms, std::initializer_list<ptx::Type> types) {
    for (const ptx::Type type : types) {
        const std::string name = std::string(".") + ptx::type_name(type);
        forms["selp" + name] = {&selp<T>, OpClass::move, type, {type, type, ptx::Type::pred}};
        const auto slct = [&](const std::string &start, Handler fn, ptx::Type c) {
            forms[start + name + "." + ptx::type_name(c)] = {fn, OpClass::move, type, {type, type, c}};
        };
        slct("slct", &map3<Slct<false>, T, T, T, int32_t>, ptx::Type::s32);
        slct("slct", &map3<Slct<false>, T, T, T, float>, ptx::Type::f32);
        slct("slct.ftz", &map3<Slct<true>, T, T, T, float>, ptx::Type::f32);
    }
}

}  // namespace

Handler move_handler(unsigned bytes) {
    switch (bytes) {
        case 0:
            return &predicate_move;
        case 1:
            return &move<uint8_t>;
        case 2:
            return &move<uint16_t>;
        case 4:
            return &move<uint32_t>;
        case 8:
            return &move<uint64_t>;
        default:
            return &move128;
    }
}

namespace {

// dst = {list[0] (lowest), ...}: list_count elements of element_bytes; null where there is no such form.
Handler pack_handler(unsigned element_bytes, unsigned count) {
    switch (element_bytes * 10 + count) {
        case 12:
            return &pack<uint16_t, uint8_t, 2>;
        case 14:
            return &pack<uint32_t, uint8_t, 4>;
        case 22:
            return &pack<uint32_t, uint16_t, 2>;
        case 24:
            return &pack<uint64_t, uint16_t, 4>;
        case 42:
            return &pack<uint64_t, uint32_t, 2>;
        case 44:
            return &pack128<uint32_t, 2>;
        case 82:
            return &pack128<uint64_t, 1>;
        default:
            return nullptr;
    }
}
// {list[0], ...} = a; kNoSlot elements are dropped.
Handler unpack_handler(unsigned element_bytes, unsigned count) {
    switch (element_bytes * 10 + count) {
        case 12:
            return &unpack<uint16_t, uint8_t, 2>;
        case 14:
            return &unpack<uint32_t, uint8_t, 4>;
        case 22:
            return &unpack<uint32_t, uint16_t, 2>;
        case 24:
            return &unpack<uint64_t, uint16_t, 4>;
        case 42:
            return &unpack<uint64_t, uint32_t, 2>;
        case 44:
            return &unpack128<uint32_t, 2>;
        case 82:
            return &unpack128<uint64_t, 1>;
        default:
            return nullptr;
    }
}

// prmt in its default mode with the same selector (imm, no sign bits: bit 3 of each digit is 0) in all lanes.
void permute_immediate(Warp &w, const Op &op) {
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b);
    const auto source = [&](unsigned k) { return op.imm >> (4 * k) & 4 ? b : a; };
    const auto shift = [&](unsigned k) { return 8 * unsigned(op.imm >> (4 * k) & 3); };
    const uint32_t *s0 = source(0), *s1 = source(1), *s2 = source(2), *s3 = source(3);
    const unsigned n0 = shift(0), n1 = shift(1), n2 = shift(2), n3 = shift(3);
    write_lanes<uint32_t>(w, op.dst, [=](unsigned i) {
        return (s0[i] >> n0 & 0xff) | (s1[i] >> n1 & 0xff) << 8 | (s2[i] >> n2 & 0xff) << 16 | (s3[i] >> n3) << 24;
    });
}

// dst = a + imm, 64-bit lanes: cvta of the windows.
void add_offset64(Warp &w, const Op &op) {
    const uint64_t *a = w.lanes<uint64_t>(op.a), offset = uint64_t(op.imm);
    write_lanes<uint64_t>(w, op.dst, [=](unsigned i) { return a[i] + offset; });
}
// isspacep: predicate dst = a's top byte equals imm's.
void in_window(Warp &w, const Op &op) {
    const uint64_t *a = w.lanes<uint64_t>(op.a), window = uint64_t(op.imm);
    write_mask(w, op.dst, collect_lanes<int64_t>([=](unsigned i) { return (a[i] & kWindowMask) == window; }));
}
void in_constant_memory(Warp &w, const Op &op) {
    const uint64_t *a = w.lanes<uint64_t>(op.a);
    write_predicate(w, op.dst, [&](unsigned i) {
        const AllocationView *view = (w.exec >> i & 1) ? w.block->global->find(a[i]) : nullptr;
        return view && view->kind == MemoryKind::module_const;
    });
}
void set_predicate(Warp &w, const Op &op) {
    write_mask(w, op.dst, uint32_t(op.imm));
}
void invert_predicate(Warp &w, const Op &op) {
    write_mask(w, op.dst, ~w.predicate(op.a));
}

}  // namespace

void add_select_forms(AluForms &forms) {
    using ptx::Type;
    put_selections<uint16_t>(forms, {Type::b16, Type::u16, Type::s16});
    put_selections<uint32_t>(forms, {Type::b32, Type::u32, Type::s32, Type::f32});
    put_selections<uint64_t>(forms, {Type::b64, Type::u64, Type::s64, Type::f64});

    const auto predicate = [&](const std::string &text, Handler fn, bool two) {
        const Type second = two ? Type::pred : Type::none;
        forms[text] = {fn, OpClass::predicate, Type::pred, {Type::pred, second}};
    };
    predicate("and.pred", &predicate2<PredicateAnd>, true);
    predicate("or.pred", &predicate2<PredicateOr>, true);
    predicate("xor.pred", &predicate2<PredicateXor>, true);
    predicate("not.pred", &invert_predicate, false);
    predicate("mov.pred", &predicate_move, false);

    const auto permute = [&](const std::string &text, Handler fn) {
        forms[text] = {fn, OpClass::move, Type::b32, {Type::b32, Type::b32, Type::b32}};
    };
    using U = uint32_t;
    permute("prmt.b32", &map3<Permute, U, U, U, U>);
    permute("prmt.b32.f4e", &map3<PermuteMode<Forward4>, U, U, U, U>);
    permute("prmt.b32.b4e", &map3<PermuteMode<Backward4>, U, U, U, U>);
    permute("prmt.b32.rc8", &map3<PermuteMode<Replicate8>, U, U, U, U>);
    permute("prmt.b32.ecl", &map3<PermuteMode<ClampLeft>, U, U, U, U>);
    permute("prmt.b32.ecr", &map3<PermuteMode<ClampRight>, U, U, U, U>);
    permute("prmt.b32.rc16", &map3<PermuteMode<Replicate16>, U, U, U, U>);
}

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

Type register_type(unsigned bytes) {
    return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

unsigned mov_bytes(Type type) {
    return type == Type::pred ? 0 : ptx::type_bytes(type);
}

void lower_pack(Lowering &lowering, const Instruction &in, Type type) {
    const Operand &vector = in.operands[1];
    if (!in.modifiers[0].starts_with('b')) lowering.unsupported(in, "vectors are packed as .b16, .b32, .b64 or .b128");
    const size_t count = vector.elements.size();
    const unsigned bytes = count ? mov_bytes(type) / unsigned(count) : 0;
    const Handler handler = pack_handler(bytes, unsigned(count));
    if (!handler || bytes * count != mov_bytes(type)) lowering.unsupported(in);
    std::vector<uint32_t> slots;
    for (const Operand &element : vector.elements)
        slots.push_back(alu_source(lowering, in, element, register_type(bytes)));
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
    const uint32_t list = lowering.list(slots);
    Op &op = lowering.emit(in, handler, OpClass::move);
    op.dst = dst;
    op.list = list;
    op.list_count = uint16_t(count);
}

void lower_unpack(Lowering &lowering, const Instruction &in, Type type) {
    const Operand &vector = in.operands[0];
    if (!in.modifiers[0].starts_with('b'))
        lowering.unsupported(in, "vectors are unpacked as .b16, .b32, .b64 or .b128");
    const size_t count = vector.elements.size();
    const unsigned bytes = count ? mov_bytes(type) / unsigned(count) : 0;
    const Handler handler = unpack_handler(bytes, unsigned(count));
    if (!handler || bytes * count != mov_bytes(type)) lowering.unsupported(in);
    const uint32_t a = alu_source(lowering, in, in.operands[1], type);
    std::vector<uint32_t> slots;
    for (const Operand &element : vector.elements)
        slots.push_back(element.kind == Operand::Kind::sink
                            ? kNoSlot
                            : alu_destination(lowering, in, element, register_type(bytes)));
    const uint32_t list = lowering.list(slots);
    Op &op = lowering.emit(in, handler, OpClass::move);
    op.a = a;
    op.list = list;
    op.list_count = uint16_t(count);
}

// The window of a state space: where a generic address of it starts. Global and constant addresses are generic ones.
uint64_t window_of(std::string_view space) {
    return space.starts_with("shared")  ? kSharedWindow
           : space == "local"           ? kLocalWindow
           : space.starts_with("param") ? kParamWindow
                                        : 0;
}

void lower_mov(Lowering &lowering, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers[0]);
    const Operand &from = in.operands[1];
    if (from.kind == Operand::Kind::vector) return lower_pack(lowering, in, type);
    if (in.operands[0].kind == Operand::Kind::vector) return lower_unpack(lowering, in, type);
    if (type == Type::pred && from.kind == Operand::Kind::integer) {
        const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
        Op &op = lowering.emit(in, &set_predicate, OpClass::predicate);
        op.dst = dst;
        op.imm = from.integer ? kAllLanes : 0;
        return;
    }
    const uint32_t a = alu_source(lowering, in, from, type);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
    Op &op = lowering.emit(in, move_handler(mov_bytes(type)), type == Type::pred ? OpClass::predicate : OpClass::move);
    op.dst = dst;
    op.a = a;
}

void lower_prmt(Lowering &lowering, const Instruction &in) {
    const bool plain = in.text() == "prmt.b32" && in.operands.size() == 4;
    if (!plain || in.operands[3].kind != Operand::Kind::integer || (in.operands[3].integer & 0x8888))
        return lower_by_text(lowering, in);
    const int64_t selector = in.operands[3].integer & 0xffff;
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::b32);
    const uint32_t b = alu_source(lowering, in, in.operands[2], Type::b32);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::b32);
    Op &op = lowering.emit(in, &permute_immediate, OpClass::move);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.imm = selector;
}

// cvta{.to}.space.size d, a: adds or subtracts the window, so that an address of another space stays out of bounds.
void lower_cvta(Lowering &lowering, const Instruction &in) {
    const bool to = in.has("to");
    const uint64_t window = window_of(in.modifiers[to ? 1 : 0]);
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::u64);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::u64);
    Op &op = lowering.emit(in, window ? &add_offset64 : move_handler(8), OpClass::conversion);
    op.dst = dst;
    op.a = a;
    op.imm = int64_t(to ? -window : window);
}

void lower_isspacep(Lowering &lowering, const Instruction &in) {
    const uint64_t window = window_of(in.modifiers[0]);
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::u64);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::pred);
    // Constant variables lie in global memory here: their addresses are both.
    Op &op = lowering.emit(in, in.modifiers[0] == "const" ? &in_constant_memory : &in_window, OpClass::predicate);
    op.dst = dst;
    op.a = a;
    op.imm = int64_t(window);
}

constexpr InstructionRow kRows[] = {
    // Moves, conversions, comparisons and logic beyond the generated forms
    {"mov.{pred,b16,b32,b64,b128,u16,u32,u64,s16,s32,s64,f32,f64}", "d, a", OpClass::move, Flow::straight, nullptr,
     lower_mov, passes_copies},
    {"cvta{.to}!.{global,"
     "shared,shared::cta,shared::cluster,local,const,param,param::entry}.u64",
     "d, a", OpClass::conversion, Flow::straight, nullptr, lower_cvta},
    {"isspacep.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry}", "d, a", OpClass::predicate,
     Flow::straight, nullptr, lower_isspacep},
    {"prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "d, a, b, c", OpClass::move, Flow::straight, nullptr, lower_prmt,
     passes_bits<kMovesAB>},
    {"selp*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"slct*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
};

}  // namespace

std::span<const InstructionRow> move_rows() {
    return kRows;
}

}  // namespace warpsim
