// Logic, shifts and bits: and or xor not cnot lop3 shl shr shf popc clz bfind brev bfe bfi fns szext bmsk.
#include <algorithm>
#include <type_traits>

#include "core/program.h"
#include "core/warp.h"
#include "instructions/arithmetic/forms.h"
#include "instructions/rows.h"

namespace warpsim {

namespace {

template <class T>
inline constexpr uint32_t kBits = 8 * sizeof(T);

struct And {
    template <class T>
    T operator()(T a, T b) const {
        return a & b;
    }
};
struct Or {
    template <class T>
    T operator()(T a, T b) const {
        return a | b;
    }
};
struct Xor {
    template <class T>
    T operator()(T a, T b) const {
        return a ^ b;
    }
};
struct Not {
    template <class T>
    T operator()(T a) const {
        return T(~a);
    }
};
struct Cnot {
    template <class T>
    T operator()(T a) const {
        return a == 0;
    }
};

// Shift amounts are 32-bit unsigned whatever the type, and clamp at its width.
struct Shl {
    template <class T>
    T operator()(T a, uint32_t n) const {
        return n < kBits<T> ? T(a << (n & (kBits<T> - 1))) : T(0);
    }
};
struct Shr {
    template <class T>
    T operator()(T a, uint32_t n) const {
        if constexpr (std::is_signed_v<T>)
            return T(a >> std::min(n, kBits<T> - 1));
        else
            return n < kBits<T> ? T(a >> (n & (kBits<T> - 1))) : T(0);
    }
};

// Funnel shifts of the 64-bit value b:a; .clamp stops at 32, .wrap takes the amount modulo 32.
template <bool Wrap>
uint32_t funnel_amount(uint32_t n) {
    return Wrap ? n & 31 : std::min(n, 32u);
}
template <bool Wrap>
struct ShfLeft {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
        return uint32_t(((uint64_t(b) << 32 | a) << funnel_amount<Wrap>(n)) >> 32);
    }
};
template <bool Wrap>
struct ShfRight {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
        return uint32_t((uint64_t(b) << 32 | a) >> funnel_amount<Wrap>(n));
    }
};

struct Popc {
    uint32_t operator()(uint32_t a) const { return uint32_t(std::popcount(a)); }
    uint32_t operator()(uint64_t a) const { return uint32_t(std::popcount(a)); }
};
struct Clz {
    uint32_t operator()(uint32_t a) const { return uint32_t(std::countl_zero(a)); }
    uint32_t operator()(uint64_t a) const { return uint32_t(std::countl_zero(a)); }
};
// Position of the highest bit that differs from the sign; .shiftamt gives the left shift that brings it to the top.
template <bool ShiftAmount>
struct Bfind {
    template <class T>
    uint32_t operator()(T a) const {
        using U = std::make_unsigned_t<T>;
        U bits = U(a);
        if constexpr (std::is_signed_v<T>) bits ^= U(a >> (kBits<T> - 1));
        if (bits == 0) return 0xffffffffu;
        const uint32_t leading = uint32_t(std::countl_zero(bits));
        return ShiftAmount ? leading : kBits<T> - 1 - leading;
    }
};
template <class T>
T reverse_bits(T a) {
    constexpr T by1 = T(0x5555555555555555ull), by2 = T(0x3333333333333333ull), by4 = T(0x0f0f0f0f0f0f0f0full);
    a = (a >> 1 & by1) | (a & by1) << 1;
    a = (a >> 2 & by2) | (a & by2) << 2;
    a = (a >> 4 & by4) | (a & by4) << 4;
    if constexpr (sizeof(T) == 4)
        return __builtin_bswap32(a);
    else
        return __builtin_bswap64(a);
}
struct Brev {
    template <class T>
    T operator()(T a) const {
        return reverse_bits(a);
    }
};

// Field of c bits from bit b on; b and c count modulo 256. Bits above the register read as the sign, which for
// signed types is the field's top bit, or the register's where the field reaches beyond it.
struct Bfe {
    template <class T>
    T operator()(T a, uint32_t b, uint32_t c) const {
        using U = std::make_unsigned_t<T>;
        const uint32_t position = b & 0xff, length = c & 0xff;
        if (length == 0) return 0;
        const bool negative = std::is_signed_v<T> && (U(a) >> std::min(position + length - 1, kBits<T> - 1) & 1);
        const U field = position < kBits<T> ? U(U(a) >> position) : U(0);
        const uint32_t valid = position < kBits<T> ? std::min(length, kBits<T> - position) : 0;
        const U mask = valid == 0 ? U(0) : U(U(~U(0)) >> (kBits<T> - valid));
        return T((field & mask) | (negative ? U(~mask) : U(0)));
    }
};
// a's low d bits put into b from bit c on.
struct Bfi {
    template <class T>
    T operator()(T a, T b, uint32_t c, uint32_t d) const {
        const uint32_t position = c & 0xff, length = d & 0xff;
        if (position >= kBits<T> || length == 0) return b;
        const T mask = T(T(length >= kBits<T> ? T(~T(0)) : T((T(1) << length) - 1)) << position);
        return T((b & ~mask) | (T(a << position) & mask));
    }
};
// The offset-th set bit of the mask, counted from base upwards (offset > 0) or downwards (< 0); base itself for 0.
struct Fns {
    uint32_t operator()(uint32_t mask, uint32_t base, int32_t offset) const {
        if (base > 31) return 0xffffffffu;
        if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
        const int step = offset > 0 ? 1 : -1;
        int64_t left = offset > 0 ? offset : -int64_t(offset);
        for (int position = int(base); position >= 0 && position < 32; position += step)
            if ((mask >> position & 1) && --left == 0) return uint32_t(position);
        return 0xffffffffu;
    }
};
// Sign- or zero-extends a's low b bits.
template <bool Wrap>
struct Szext {
    template <class T>
    T operator()(T a, uint32_t b) const {
        const uint32_t length = Wrap ? b & 31 : std::min(b, 32u);
        if (length == 0) return 0;
        return T(T(uint32_t(a) << (32 - length)) >> (32 - length));
    }
};
// b ones from bit a on.
template <bool Wrap>
struct Bmsk {
    uint32_t operator()(uint32_t a, uint32_t b) const {
        const uint32_t position = Wrap ? a & 31 : std::min(a, 32u), length = Wrap ? b & 31 : std::min(b, 32u);
        return uint32_t(((uint64_t(1) << length) - 1) << position);
    }
};

// Any function of three bits: imm bit (a<<2 | b<<1 | c) is its value there. The truth table becomes four functions of
// c, which b and then a choose from, all with masks that are the same in every lane.
void lop3(Warp &w, const Op &op) {
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b), *c = w.lanes<uint32_t>(op.c);
    uint32_t base[4], flip[4];
    for (unsigned k = 0; k < 4; ++k) {
        base[k] = -uint32_t(op.imm >> (2 * k) & 1);
        flip[k] = base[k] ^ -uint32_t(op.imm >> (2 * k + 1) & 1);
    }
    write_lanes<uint32_t>(w, op.dst, [=](unsigned i) {
        const uint32_t f0 = base[0] ^ (c[i] & flip[0]), f1 = base[1] ^ (c[i] & flip[1]);
        const uint32_t f2 = base[2] ^ (c[i] & flip[2]), f3 = base[3] ^ (c[i] & flip[3]);
        const uint32_t low = f0 ^ (b[i] & (f0 ^ f1)), high = f2 ^ (b[i] & (f2 ^ f3));
        return low ^ (a[i] & (low ^ high));
    });
}

constexpr OpClass kInteger = OpClass::integer;

template <class T>
void add_logic(AluForms &forms) {
    const std::string type = ".b" + std::to_string(kBits<T>);
    add2<And, T, T, T>(forms, "and" + type, kInteger);
    add2<Or, T, T, T>(forms, "or" + type, kInteger);
    add2<Xor, T, T, T>(forms, "xor" + type, kInteger);
    add1<Not, T, T>(forms, "not" + type, kInteger);
    add1<Cnot, T, T>(forms, "cnot" + type, kInteger);
    add2<Shl, T, T, uint32_t>(forms, "shl" + type, kInteger);
    add2<Shr, T, T, uint32_t>(forms, "shr" + type, kInteger);
    add2<Shr, T, T, uint32_t>(forms, "shr" + type_suffix<T>(), kInteger);
    using S = std::make_signed_t<T>;
    add2<Shr, S, S, uint32_t>(forms, "shr" + type_suffix<S>(), kInteger);
}
template <class T>
void add_fields(AluForms &forms) {
    const std::string type = type_suffix<T>();
    add1<Bfind<false>, uint32_t, T>(forms, "bfind" + type, kInteger);
    add1<Bfind<true>, uint32_t, T>(forms, "bfind.shiftamt" + type, kInteger);
    add3<Bfe, T, T, uint32_t, uint32_t>(forms, "bfe" + type, kInteger);
}
template <class T>
void add_counts(AluForms &forms) {
    const std::string type = ".b" + std::to_string(kBits<T>);
    add1<Popc, uint32_t, T>(forms, "popc" + type, kInteger);
    add1<Clz, uint32_t, T>(forms, "clz" + type, kInteger);
    add1<Brev, T, T>(forms, "brev" + type, kInteger);
    add4<Bfi, T, T, T, uint32_t, uint32_t>(forms, "bfi" + type, kInteger);
}
template <bool Wrap>
void add_modes(AluForms &forms, const std::string &mode) {
    add3<ShfLeft<Wrap>, uint32_t, uint32_t, uint32_t, uint32_t>(forms, "shf.l" + mode + ".b32", kInteger);
    add3<ShfRight<Wrap>, uint32_t, uint32_t, uint32_t, uint32_t>(forms, "shf.r" + mode + ".b32", kInteger);
    add2<Szext<Wrap>, uint32_t, uint32_t, uint32_t>(forms, "szext" + mode + ".u32", kInteger);
    add2<Szext<Wrap>, int32_t, int32_t, uint32_t>(forms, "szext" + mode + ".s32", kInteger);
    add2<Bmsk<Wrap>, uint32_t, uint32_t, uint32_t>(forms, "bmsk" + mode + ".b32", kInteger);
}

}  // namespace

void add_bit_forms(AluForms &forms) {
    add_logic<uint16_t>(forms);
    add_logic<uint32_t>(forms);
    add_logic<uint64_t>(forms);
    add_counts<uint32_t>(forms);
    add_counts<uint64_t>(forms);
    add_fields<uint32_t>(forms);
    add_fields<int32_t>(forms);
    add_fields<uint64_t>(forms);
    add_fields<int64_t>(forms);
    add_modes<false>(forms, ".clamp");
    add_modes<true>(forms, ".wrap");
    add3<Fns, uint32_t, uint32_t, uint32_t, int32_t>(forms, "fns.b32", kInteger);
    forms["lop3.b32"] = {&lop3, kInteger, ptx::Type::b32, {ptx::Type::b32, ptx::Type::b32, ptx::Type::b32}};
}

namespace {

// As lop3, and predicate list[0] = (dst != 0) or predicate list[1]; extra: and instead of or.
void exec_lop3_predicate(Warp &w, const Op &op) {
    lop3(w, op);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    const uint32_t *result = w.lanes<uint32_t>(op.dst), q = w.predicate(list[1]);
    const uint32_t nonzero = collect_lanes<int32_t>([=](unsigned i) { return result[i] != 0; });
    write_mask(w, list[0], op.extra ? nonzero & q : nonzero | q);
}

// lop3.b32 d, a, b, c, immLut: the truth table goes into imm.
void lower_lop3(Lowering &lowering, const ptx::Instruction &in) {
    emit_form(lowering, in, *find_form("lop3.b32", 3)).imm = in.operands[4].integer & 0xff;
}

// lop3.{or,and}.b32 d|p, a, b, c, immLut, q
void lower_lop3_predicate(Lowering &lowering, const ptx::Instruction &in) {
    using ptx::Type;
    if (!in.operands[0].has_pair) lowering.unsupported(in, "it needs a second destination, a predicate");
    uint32_t source[3];
    for (size_t i = 0; i < 3; ++i) source[i] = alu_source(lowering, in, in.operands[i + 1], Type::b32);
    const uint32_t q = alu_source(lowering, in, in.operands[5], Type::pred);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::b32);
    const uint32_t p = alu_destination(lowering, in, in.operands[0].elements[0], Type::pred);
    const uint32_t list = lowering.list({p, q});
    Op &op = lowering.emit_row(in);
    op.dst = dst;
    op.a = source[0];
    op.b = source[1];
    op.c = source[2];
    op.imm = in.operands[4].integer & 0xff;
    op.extra = in.has("and");
    op.list = list;
    op.list_count = 2;
}

constexpr InstructionRow kRows[] = {
    {"lop3.b32", "d, a, b, c, i", OpClass::integer, Flow::straight, nullptr, lower_lop3, passes_lop3},
    {"lop3.{or,and}.b32", "d|p, a, b, c, i, e", OpClass::integer, Flow::straight, exec_lop3_predicate,
     lower_lop3_predicate, passes_lop3},
    {"not*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableNotA>},
    {"cnot*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"popc*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"clz*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bfind*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"brev*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"and*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA & kTableB>},
    {"or*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA | kTableB>},
    {"xor*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA ^ kTableB>},
    {"shl*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"shr*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"szext*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bmsk*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"shf*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"bfe*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"fns*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bfi*", "d, a, b, c, e", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
};

}  // namespace

std::span<const InstructionRow> logic_rows() {
    return kRows;
}

}  // namespace warpsim
