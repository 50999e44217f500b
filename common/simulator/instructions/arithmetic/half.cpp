// f16, f16x2, bf16, bf16x2: add sub mul fma neg abs min max ex2 tanh.
//
// Arithmetic is done in float and rounded once more to 16 bits. For add, sub and mul that double rounding is harmless:
// - a float keeps 24 >= 2 * 11 + 2 bits, so a sum or product of two halves that float cannot hold exactly lies too far
//   from every tie of the 11-bit (8-bit) format for the first rounding to reach one (Figueroa, 1995);
// - f16: results below 2^-14 are sums of multiples of 2^-24 (exact in float), or products of at least 2^-48 with 22
//   significant bits (exact in float, too);
// - bf16: sums of subnormals are exact multiples of 2^-133. A product has 16 significant bits; float's last bit,
//   2^-149, is 16 places below the ties of subnormal bf16 at odd multiples of 2^-134: what float drops from a product
//   with a bit at 2^-134 or above is below its 16 bits, hence nothing. Smaller products give 0 either way.
// fma is rounded to odd first: see fused_multiply_add.
#include <algorithm>
#include <cmath>

#include "instructions/arithmetic/forms.h"
#include "instructions/arithmetic/numbers.h"

namespace warpsim {
namespace {

// Stores `count` 16-bit results (32: one for each lane; 64: two for each lane) in the executing lanes.
template <unsigned Count>
void store(Warp &w, const Op &op, const uint16_t *result) {
    if constexpr (Count == kLanes) {
        write_lanes<uint16_t>(w, op.dst, [=](unsigned i) { return result[i]; });
    } else {
        uint32_t pairs[kLanes];
        std::memcpy(pairs, result, sizeof pairs);
        const uint32_t *p = pairs;
        write_lanes<uint32_t>(w, op.dst, [=](unsigned i) { return p[i]; });
    }
}

// Subnormal f16 to a zero of the same sign.
inline uint16_t flush(uint16_t x) {
    return (x & 0x7fff) < F16::kSmallestNormal ? x & 0x8000 : x;
}

enum class Clamp { none, sat, relu };

// A result counts as subnormal if it is one after rounding to 11 bits with an exponent that is not bounded below: from
// the tie between the two neighbours of 2^-14 on it is not.
inline float flush_result(float x) {
    return std::abs(x) < 0x1p-14f - 0x1p-26f ? std::copysign(0.0f, x) : x;
}

// F: float functor of `Sources` floats; Ftz flushes subnormal f16 inputs and results.
template <class Format, class F, unsigned Sources, unsigned Count, Clamp C, bool Ftz>
void arithmetic(Warp &w, const Op &op) {
    alignas(64) float x[3][Count];
    alignas(64) uint16_t raw[Count];
    const uint32_t slots[3] = {op.a, op.b, op.c};
    for (unsigned s = 0; s < Sources; ++s) {
        const uint16_t *from = w.lanes<uint16_t>(slots[s]);
        if constexpr (Ftz) {
            for (unsigned i = 0; i < Count; ++i) raw[i] = flush(from[i]);
            from = raw;
        }
        Format::widen(from, x[s], Count);
    }
    alignas(64) float result[Count];
    for (unsigned i = 0; i < Count; ++i) {
        float r;
        if constexpr (Sources == 1)
            r = F{}(x[0][i]);
        else if constexpr (Sources == 2)
            r = F{}(x[0][i], x[1][i]);
        else
            r = F{}(x[0][i], x[1][i], x[2][i]);
        if constexpr (C == Clamp::sat)
            r = saturate(r);
        else if constexpr (C == Clamp::relu)
            r = canonical(r < 0 ? 0.0f : r + 0.0f);
        else
            r = canonical(r);
        result[i] = Ftz ? flush_result(r) : r;
    }
    Format::narrow(result, raw, Count);
    store<Count>(w, op, raw);
}

struct Add {
    float operator()(float a, float b) const { return a + b; }
};
struct Sub {
    float operator()(float a, float b) const { return a - b; }
};
struct Mul {
    float operator()(float a, float b) const { return a * b; }
};
struct Fma {
    float operator()(float a, float b, float c) const { return fused_multiply_add(a, b, c); }
};
struct Ex2 {
    float operator()(float a) const { return exp2_approx(a); }
};
struct Tanh {
    float operator()(float a) const { return tanh_approx(a); }
};

// neg and abs touch the sign bit alone, NaNs included.
template <uint16_t Keep, uint16_t Flip, unsigned Count, bool Ftz>
void sign(Warp &w, const Op &op) {
    const uint16_t *a = w.lanes<uint16_t>(op.a);
    alignas(64) uint16_t result[Count];
    for (unsigned i = 0; i < Count; ++i) {
        const uint16_t x = Ftz ? flush(a[i]) : a[i];
        result[i] = uint16_t((x & Keep) ^ Flip);
    }
    store<Count>(w, op, result);
}

constexpr OpClass kHalf = OpClass::fp16;

// One format, scalar (Count 32) or packed (64).
template <class Format, unsigned Count>
struct Family {
    AluForms &forms;
    ptx::Type type;

    std::string text(const std::string &start) const { return start + "." + ptx::type_name(type); }
    template <unsigned Sources>
    void put(const std::string &start, Handler fn, OpClass cls = kHalf) {
        AluForm form{fn, cls, type, {}};
        std::fill_n(form.src.begin(), Sources, type);
        forms[text(start)] = form;
    }
    template <class F, unsigned Sources, Clamp C = Clamp::none, bool Ftz = false>
    static constexpr Handler handler = &arithmetic<Format, F, Sources, Count, C, Ftz>;

    template <class F>
    void binary(const std::string &opcode) {
        for (const char *round : {"", ".rn"}) {
            put<2>(opcode + round, handler<F, 2>);
            if constexpr (std::is_same_v<Format, F16>) {
                put<2>(opcode + round + ".ftz", handler<F, 2, Clamp::none, true>);
                put<2>(opcode + round + ".sat", handler<F, 2, Clamp::sat>);
                put<2>(opcode + round + ".ftz.sat", handler<F, 2, Clamp::sat, true>);
            }
        }
    }
    template <class M>
    void extremum(const std::string &start) {
        put<2>(start, handler<M, 2>);
        if constexpr (std::is_same_v<Format, F16>) {
            const size_t dot = start.find('.');
            const std::string opcode = start.substr(0, dot), rest = dot == start.npos ? "" : start.substr(dot);
            put<2>(opcode + ".ftz" + rest, handler<M, 2, Clamp::none, true>);
        }
    }
    template <bool Max>
    void extrema(const std::string &opcode) {
        extremum<Extremum<Max, false, false>>(opcode);
        extremum<Extremum<Max, true, false>>(opcode + ".NaN");
        extremum<Extremum<Max, false, true>>(opcode + ".xorsign.abs");
        extremum<Extremum<Max, true, true>>(opcode + ".NaN.xorsign.abs");
    }
    void add() {
        binary<Add>("add");
        binary<Sub>("sub");
        binary<Mul>("mul");
        put<3>("fma.rn", handler<Fma, 3>);
        put<3>("fma.rn.relu", handler<Fma, 3, Clamp::relu>);
        extrema<false>("min");
        extrema<true>("max");
        put<1>("neg", &sign<0xffff, 0x8000, Count, false>);
        put<1>("abs", &sign<0x7fff, 0, Count, false>);
        put<1>("tanh.approx", handler<Tanh, 1>, OpClass::special_function);
        if constexpr (std::is_same_v<Format, F16>) {
            put<3>("fma.rn.ftz", handler<Fma, 3, Clamp::none, true>);
            put<3>("fma.rn.sat", handler<Fma, 3, Clamp::sat>);
            put<3>("fma.rn.ftz.sat", handler<Fma, 3, Clamp::sat, true>);
            put<3>("fma.rn.ftz.relu", handler<Fma, 3, Clamp::relu, true>);
            put<1>("neg.ftz", &sign<0xffff, 0x8000, Count, true>);
            put<1>("abs.ftz", &sign<0x7fff, 0, Count, true>);
            put<1>("ex2.approx", handler<Ex2, 1>, OpClass::special_function);
        } else {
            put<1>("ex2.approx.ftz", &flushed_ex2, OpClass::special_function);
        }
    }
    // bf16's only .ftz: its subnormals are float's.
    static void flushed_ex2(Warp &w, const Op &op) {
        struct FlushedEx2 {
            float operator()(float a) const { return flush_subnormal(exp2_approx(flush_subnormal(a))); }
        };
        arithmetic<Format, FlushedEx2, 1, Count, Clamp::none, false>(w, op);
    }
};

}  // namespace

void add_half_forms(AluForms &forms) {
    Family<F16, kLanes>{forms, ptx::Type::f16}.add();
    Family<F16, 2 * kLanes>{forms, ptx::Type::f16x2}.add();
    Family<Bf16, kLanes>{forms, ptx::Type::bf16}.add();
    Family<Bf16, 2 * kLanes>{forms, ptx::Type::bf16x2}.add();
}

}  // namespace warpsim
