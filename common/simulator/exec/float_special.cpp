// The approximations: div.approx/.full, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh.
//
// The manual bounds their error (up to 2 ulp; lg2, sin, cos and tanh an absolute or looser one); here they are within
// 1 ulp of the exact result, so low bits differ from a GPU's. Special values follow the manual.
#include "exec/alu.h"
#include "exec/float_functions.h"

namespace warpsim {
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
struct Rcp {
    float operator()(float a) const { return 1.0f / a; }
};
struct Sqrt {
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
    put1<Rcp>(forms, "rcp.approx");
    put1<Sqrt>(forms, "sqrt.approx");
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
