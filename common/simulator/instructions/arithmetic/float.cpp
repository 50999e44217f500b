// f32, f32x2 and f64 arithmetic with IEEE rounding: add sub mul fma mad div rcp sqrt in the four rounding modes, abs
// neg min max copysign testp. NaN results of f32 are the canonical 0x7fffffff. With .ftz, results are flushed after
// rounding.
#include <algorithm>
#include <type_traits>

#include "instructions/arithmetic/forms.h"
#include "instructions/arithmetic/numbers.h"

namespace warpsim {

namespace {

struct Add {
    template <class T>
    T operator()(T a, T b) const {
        return a + b;
    }
};
struct Sub {
    template <class T>
    T operator()(T a, T b) const {
        return a - b;
    }
};
struct Mul {
    template <class T>
    T operator()(T a, T b) const {
        return a * b;
    }
};
struct Fma {
    float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
    double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
struct Div {
    template <class T>
    T operator()(T a, T b) const {
        return a / b;
    }
};
struct Rcp {
    template <class T>
    T operator()(T a) const {
        return T(1) / a;
    }
};
struct Sqrt {
    template <class T>
    T operator()(T a) const {
        return std::sqrt(a);
    }
};

// F with .ftz and .sat around it.
template <class F, bool Ftz, bool Sat>
struct Modified {
    template <class T, class... S>
    T operator()(T a, S... rest) const {
        if constexpr (Ftz) {
            const T r = finish(F{}(flush_subnormal(a), flush_subnormal(rest)...));
            return flush_subnormal(r);
        } else {
            return finish(F{}(a, rest...));
        }
    }
    template <class T>
    static T finish(T r) {
        if constexpr (Sat)
            return saturate(r);
        else
            return canonical(r);
    }
};

template <class F, class T, unsigned Sources>
void map(Warp &w, const Op &op) {
    if constexpr (Sources == 1)
        map1<F, T, T>(w, op);
    else if constexpr (Sources == 2)
        map2<F, T, T, T>(w, op);
    else
        map3<F, T, T, T, T>(w, op);
}
// Two floats in each 64-bit lane.
template <class F, unsigned Sources>
void map_pairs(Warp &w, const Op &op) {
    const float *a = w.lanes<float>(op.a), *b = w.lanes<float>(op.b);
    alignas(64) float result[2 * kLanes];
    if constexpr (Sources == 2) {
        for (unsigned i = 0; i < 2 * kLanes; ++i) result[i] = F{}(a[i], b[i]);
    } else {
        const float *c = w.lanes<float>(op.c);
        for (unsigned i = 0; i < 2 * kLanes; ++i) result[i] = F{}(a[i], b[i], c[i]);
    }
    uint64_t pairs[kLanes];
    std::memcpy(pairs, result, sizeof pairs);
    const uint64_t *p = pairs;
    write_lanes<uint64_t>(w, op.dst, [=](unsigned i) { return p[i]; });
}

AluForm form(Handler fn, OpClass cls, ptx::Type type, unsigned sources) {
    AluForm result{fn, cls, type, {}};
    std::fill_n(result.src.begin(), sources, type);
    return result;
}

// Puts modes under text + .rn .rz .rm .rp + rest, and without a mode (which is .rn) where that is allowed.
struct Modes {
    Handler nearest, zero, down, up;
};
void put_modes(AluForms &forms, const std::string &text, const std::string &rest, AluForm form, const Modes &modes) {
    const std::pair<const char *, Handler> all[] = {
        {".rn", modes.nearest}, {".rz", modes.zero}, {".rm", modes.down}, {".rp", modes.up}};
    for (const auto &[name, handler] : all) {
        form.fn = handler;
        forms[text + name + rest] = form;
    }
}
template <Handler H>
void put_rounded(AluForms &forms, const std::string &text, const char *rest, AluForm form, bool mode_optional) {
    put_modes(forms, text, rest, form,
              {H, &rounded<H, FE_TOWARDZERO>, &rounded<H, FE_DOWNWARD>, &rounded<H, FE_UPWARD>});
    form.fn = H;
    if (mode_optional) forms[text + rest] = form;
}

struct Traits {
    OpClass f32 = OpClass::fp32, f64 = OpClass::fp64;
    bool mode_optional = false, saturates = false, pairs = false;
};

template <class F, unsigned Sources>
void put_arithmetic(AluForms &forms, const std::string &op, const Traits &t) {
    const AluForm f32 = form(nullptr, t.f32, ptx::Type::f32, Sources);
    put_rounded<&map<Modified<F, false, false>, float, Sources>>(forms, op, ".f32", f32, t.mode_optional);
    put_rounded<&map<Modified<F, true, false>, float, Sources>>(forms, op, ".ftz.f32", f32, t.mode_optional);
    if (t.saturates) {
        put_rounded<&map<Modified<F, false, true>, float, Sources>>(forms, op, ".sat.f32", f32, t.mode_optional);
        put_rounded<&map<Modified<F, true, true>, float, Sources>>(forms, op, ".ftz.sat.f32", f32, t.mode_optional);
    }
    const AluForm f64 = form(nullptr, t.f64, ptx::Type::f64, Sources);
    put_rounded<&map<F, double, Sources>>(forms, op, ".f64", f64, t.mode_optional);
    if constexpr (Sources > 1) {
        if (!t.pairs) return;
        const AluForm f32x2 = form(nullptr, t.f32, ptx::Type::f32x2, Sources);
        put_rounded<&map_pairs<Modified<F, false, false>, Sources>>(forms, op, ".f32x2", f32x2, t.mode_optional);
        put_rounded<&map_pairs<Modified<F, true, false>, Sources>>(forms, op, ".ftz.f32x2", f32x2, t.mode_optional);
    }
}

// The sign bit alone changes, of NaNs too.
template <bool Abs, bool Ftz>
struct Sign {
    template <class T>
    T operator()(T a) const {
        using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
        if constexpr (Ftz) a = flush_subnormal(a);
        const Bits bits = std::bit_cast<Bits>(a);
        return std::bit_cast<T>(Abs ? bits & ~sign : bits ^ sign);
    }
};
// copysign d, a, b: a's sign on b's magnitude.
template <class Bits>
struct CopySign {
    Bits operator()(Bits a, Bits b) const {
        constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
        return (a & sign) | (b & ~sign);
    }
};
// The largest or smallest of three; Abs: of their magnitudes.
template <bool Max, bool Nan, bool Abs, bool Ftz>
struct Extremum3 {
    float operator()(float a, float b, float c) const {
        if constexpr (Abs) a = std::fabs(a), b = std::fabs(b), c = std::fabs(c);
        if constexpr (Ftz) a = flush_subnormal(a), b = flush_subnormal(b), c = flush_subnormal(c);
        using Two = Extremum<Max, Nan, false>;
        return Two{}(Two{}(a, b), c);
    }
};

template <bool Max, bool Nan>
void put_extrema(AluForms &forms, const std::string &opcode) {
    const std::string nan = Nan ? ".NaN" : "";
    const AluForm two = form(nullptr, OpClass::fp32, ptx::Type::f32, 2),
                  three = form(nullptr, OpClass::fp32, ptx::Type::f32, 3);
    const auto put = [&](const std::string &text, AluForm f, Handler fn) {
        f.fn = fn;
        forms[opcode + text] = f;
    };
    put(nan + ".f32", two, &map<Modified<Extremum<Max, Nan, false>, false, false>, float, 2>);
    put(".ftz" + nan + ".f32", two, &map<Modified<Extremum<Max, Nan, false>, true, false>, float, 2>);
    put(nan + ".xorsign.abs.f32", two, &map<Modified<Extremum<Max, Nan, true>, false, false>, float, 2>);
    put(".ftz" + nan + ".xorsign.abs.f32", two, &map<Modified<Extremum<Max, Nan, true>, true, false>, float, 2>);
    put(nan + ".f32/3", three, &map<Extremum3<Max, Nan, false, false>, float, 3>);
    put(".ftz" + nan + ".f32/3", three, &map<Extremum3<Max, Nan, false, true>, float, 3>);
    put(nan + ".abs.f32/3", three, &map<Extremum3<Max, Nan, true, false>, float, 3>);
    put(".ftz" + nan + ".abs.f32/3", three, &map<Extremum3<Max, Nan, true, true>, float, 3>);
}

enum class Test { finite, infinite, number, notanumber, normal, subnormal };

template <class T, Test K>
void testp(Warp &w, const Op &op) {
    const T *a = w.lanes<T>(op.a);
    using Mask = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    write_mask(w, op.dst, collect_lanes<Mask>([=](unsigned i) {
                   const T magnitude = std::abs(a[i]);
                   constexpr T infinity = std::numeric_limits<T>::infinity(), smallest = std::numeric_limits<T>::min();
                   if constexpr (K == Test::finite)
                       return magnitude < infinity;
                   else if constexpr (K == Test::infinite)
                       return magnitude == infinity;
                   else if constexpr (K == Test::number)
                       return magnitude <= infinity;
                   else if constexpr (K == Test::notanumber)
                       return !(magnitude <= infinity);
                   else if constexpr (K == Test::normal)
                       return magnitude >= smallest && magnitude < infinity;
                   else
                       return magnitude < smallest && magnitude > 0;
               }));
}
template <class T>
void put_testp(AluForms &forms) {
    const std::string type = type_suffix<T>();
    const auto put = [&](const char *name, Handler fn) {
        forms["testp." + std::string(name) + type] = {fn, OpClass::predicate, ptx::Type::pred, {kTypeOf<T>}};
    };
    put("finite", &testp<T, Test::finite>);
    put("infinite", &testp<T, Test::infinite>);
    put("number", &testp<T, Test::number>);
    put("notanumber", &testp<T, Test::notanumber>);
    put("normal", &testp<T, Test::normal>);
    put("subnormal", &testp<T, Test::subnormal>);
}

// A float operation whose first sources are 16-bit floats: add and sub have one of them, fma two.
template <class F, class Format>
struct Mixed {
    static float wide(uint16_t bits) { return std::is_same_v<Format, F16> ? f16_to_float(bits) : bf16_to_float(bits); }
    float operator()(uint16_t a, float b) const { return F{}(wide(a), b); }
    float operator()(uint16_t a, uint16_t b, float c) const { return F{}(wide(a), wide(b), c); }
};
template <class F, class Format>
void put_mixed(AluForms &forms, const std::string &op, const std::string &sat, ptx::Type type) {
    const std::string types = sat + ".f32." + ptx::type_name(type);
    constexpr bool three =
        std::is_same_v<F, Modified<Fma, false, false>> || std::is_same_v<F, Modified<Fma, false, true>>;
    AluForm like{nullptr, OpClass::fp32, ptx::Type::f32, {type, ptx::Type::f32}};
    if constexpr (three) {
        like.src = {type, type, ptx::Type::f32};
        put_rounded<&map3<Mixed<F, Format>, float, uint16_t, uint16_t, float>>(forms, op, types.c_str(), like, false);
    } else {
        put_rounded<&map2<Mixed<F, Format>, float, uint16_t, float>>(forms, op, types.c_str(), like, true);
    }
}
template <class F>
void put_all_mixed(AluForms &forms, const std::string &op) {
    put_mixed<Modified<F, false, false>, F16>(forms, op, "", ptx::Type::f16);
    put_mixed<Modified<F, false, true>, F16>(forms, op, ".sat", ptx::Type::f16);
    put_mixed<Modified<F, false, false>, Bf16>(forms, op, "", ptx::Type::bf16);
    put_mixed<Modified<F, false, true>, Bf16>(forms, op, ".sat", ptx::Type::bf16);
}

}  // namespace

void add_float_forms(AluForms &forms) {
    const OpClass sfu = OpClass::special_function;
    put_arithmetic<Add, 2>(forms, "add", {.mode_optional = true, .saturates = true, .pairs = true});
    put_arithmetic<Sub, 2>(forms, "sub", {.mode_optional = true, .saturates = true, .pairs = true});
    put_arithmetic<Mul, 2>(forms, "mul", {.mode_optional = true, .saturates = true, .pairs = true});
    put_arithmetic<Fma, 3>(forms, "fma", {.saturates = true, .pairs = true});
    put_arithmetic<Fma, 3>(forms, "mad", {.saturates = true});
    put_arithmetic<Div, 2>(forms, "div", {});
    put_arithmetic<Rcp, 1>(forms, "rcp", {.f32 = sfu});
    put_arithmetic<Sqrt, 1>(forms, "sqrt", {.f32 = sfu});

    put_all_mixed<Add>(forms, "add");
    put_all_mixed<Sub>(forms, "sub");
    put_all_mixed<Fma>(forms, "fma");

    add1<Sign<true, false>, float, float>(forms, "abs.f32", OpClass::fp32);
    add1<Sign<true, true>, float, float>(forms, "abs.ftz.f32", OpClass::fp32);
    add1<Sign<true, false>, double, double>(forms, "abs.f64", OpClass::fp64);
    add1<Sign<false, false>, float, float>(forms, "neg.f32", OpClass::fp32);
    add1<Sign<false, true>, float, float>(forms, "neg.ftz.f32", OpClass::fp32);
    add1<Sign<false, false>, double, double>(forms, "neg.f64", OpClass::fp64);
    put_extrema<false, false>(forms, "min");
    put_extrema<false, true>(forms, "min");
    put_extrema<true, false>(forms, "max");
    put_extrema<true, true>(forms, "max");
    add2<Extremum<false, false, false>, double, double, double>(forms, "min.f64", OpClass::fp64);
    add2<Extremum<true, false, false>, double, double, double>(forms, "max.f64", OpClass::fp64);
    add2<CopySign<uint32_t>, uint32_t, uint32_t, uint32_t>(forms, "copysign.f32", OpClass::fp32);
    add2<CopySign<uint64_t>, uint64_t, uint64_t, uint64_t>(forms, "copysign.f64", OpClass::fp64);
    put_testp<float>(forms);
    put_testp<double>(forms);
}

namespace {

template <class F, bool Ftz>
struct Approximate {
    template <class... S>
    float operator()(S... s) const {
        if constexpr (Ftz)
            return flush_subnormal(canonical(F{}(flush_subnormal(s)...)));
        else
            return canonical(F{}(s...));
    }
};

// a * (1 / b): for 2^126 < |b| the reciprocal is subnormal and taken as 0.
struct DivApprox {
    float operator()(float a, float b) const {
        const float magnitude = std::fabs(b);
        const float divisor = magnitude > 0x1p126f ? std::copysign(HUGE_VALF, b) : b;
        return a / divisor;
    }
};
struct DivFull {
    float operator()(float a, float b) const { return a / b; }
};
struct RcpApprox {
    float operator()(float a) const { return 1.0f / a; }
};
struct SqrtApprox {
    float operator()(float a) const { return std::sqrt(a); }
};
struct Rsqrt {
    float operator()(float a) const { return 1.0f / std::sqrt(a); }
    double operator()(double a) const { return 1.0 / std::sqrt(a); }
};
struct Sin {
    float operator()(float a) const { return std::sin(a); }
};
struct Cos {
    float operator()(float a) const { return std::cos(a); }
};
struct Lg2 {
    float operator()(float a) const { return std::log2(a); }
};
struct Ex2 {
    float operator()(float a) const { return exp2_approx(a); }
};
struct Tanh {
    float operator()(float a) const { return tanh_approx(a); }
};

// The f64 seeds: computed from the upper 32 bits of the input, with zeros in the lower 32 bits of the result.
template <class F>
struct Seed {
    double operator()(double a) const {
        uint64_t bits = std::bit_cast<uint64_t>(a) & 0xffffffff00000000ull;
        if ((bits & 0x7ff0000000000000ull) == 0) bits &= 0x8000000000000000ull;
        const double result = F{}(std::bit_cast<double>(bits));
        bits = std::bit_cast<uint64_t>(result) & 0xffffffff00000000ull;
        if ((bits & 0x7ff0000000000000ull) == 0) bits &= 0x8000000000000000ull;
        return std::bit_cast<double>(bits);
    }
};
struct Reciprocal64 {
    double operator()(double a) const { return 1.0 / a; }
};

constexpr OpClass kSpecial = OpClass::special_function;

template <class F>
void put1(AluForms &forms, const std::string &start) {
    add1<Approximate<F, false>, float, float>(forms, start + ".f32", kSpecial);
    add1<Approximate<F, true>, float, float>(forms, start + ".ftz.f32", kSpecial);
}
template <class F>
void put2(AluForms &forms, const std::string &start) {
    add2<Approximate<F, false>, float, float, float>(forms, start + ".f32", OpClass::fp32);
    add2<Approximate<F, true>, float, float, float>(forms, start + ".ftz.f32", OpClass::fp32);
}

}  // namespace

void add_special_forms(AluForms &forms) {
    put2<DivApprox>(forms, "div.approx");
    put2<DivFull>(forms, "div.full");
    put1<RcpApprox>(forms, "rcp.approx");
    put1<SqrtApprox>(forms, "sqrt.approx");
    put1<Rsqrt>(forms, "rsqrt.approx");
    put1<Sin>(forms, "sin.approx");
    put1<Cos>(forms, "cos.approx");
    put1<Lg2>(forms, "lg2.approx");
    put1<Ex2>(forms, "ex2.approx");
    add1<Approximate<Tanh, false>, float, float>(forms, "tanh.approx.f32", kSpecial);
    add1<Rsqrt, double, double>(forms, "rsqrt.approx.f64", kSpecial);
    add1<Seed<Reciprocal64>, double, double>(forms, "rcp.approx.ftz.f64", kSpecial);
    add1<Seed<Rsqrt>, double, double>(forms, "rsqrt.approx.ftz.f64", kSpecial);
}

}  // namespace warpsim
