// Attention in float64 on the host, from the rounded inputs: what every stage is compared with.
#pragma once

#include <vector>

#include "problem.h"

namespace flash {

struct Reference {
    std::vector<double> O;  // softmax(scale QKᵀ) V, in the problem's layout
    // softmax(scale QKᵀ) |V|: what the element-wise bound grows with; of e4m3 |O| besides, since the sum of the weights
    // is of rounded ones.
    std::vector<double> magnitude;
    // What weights below the type's normal numbers may move it by, and of e4m3 the errors of the scores (bounds.h).
    std::vector<double> fine;
    // [B, Hq, Nq]: the natural logarithm of each row's sum of exp(scale QKᵀ), -infinity for a row that sees no key; and
    // what a stage may be off by (bounds.h).
    std::vector<double> log_sum_exp, log_sum_exp_bound;
};

// Runs on as many threads, 0: one for each of the host's cores, 1: this one alone, as where there are no threads.
// Causal: query i sees keys j <= i + Nkv - Nq, so that the last query sees the last key; a row that sees nothing is
// zero. Throws std::bad_alloc where the host's memory is not enough.
Reference reference(const Problem &problem, const Inputs &inputs, unsigned threads = 0);

struct Comparison {
    bool passed = false;
    double frobenius = 0;  // ||O - reference|| / ||reference||
    double worst = 0;      // largest |O - reference| / bound
    std::string message;   // one line; names the first and the worst element where there are wrong ones
};

// Limits (bounds.h has them): a relative Frobenius error of 6e-4 (fp16) or 4e-3 (bf16), and for each element
// 4 u softmax(S)|V| with u = 2^-11 or 2^-8. The element-wise bound adds up: rounding P to 16 bits moves O by at most u
// softmax(S)|V|, and so does rounding the result itself, since |O| <= softmax(S)|V|; the row sum is taken from P before
// rounding, which moves the quotient by less than u again; what is left of the factor 4 is for fp32 accumulation and
// exp. Where the type has only subnormal numbers left, rounding the result is off by up to half the smallest of them
// (2^-25 or 2^-134): each element's bound grows by that, and the limit of the whole by sqrt(elements) times that. Where
// weights are subnormal, so is theirs: each bound grows by the element's `fine`, and the limit by ||fine||. Where the
// inputs are e4m3, P is rounded to that, and scores are off: docs/correctness.md.
Comparison compare(const Problem &problem, const std::vector<uint16_t> &O, const Reference &reference);

// Each row within its bound, and -infinity where the reference is. frobenius stays 0.
Comparison compare_log_sum_exp(const Problem &problem, const std::vector<float> &sums, const Reference &reference);

inline constexpr uint16_t poison = 0xffff;  // a NaN in both types: outputs are filled with it before a run

}  // namespace flash
