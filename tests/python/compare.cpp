// What test_host_programs.py asks of common/host/reference.cpp and problem.cpp, on standard input and output:
//   compare DTYPE ELEMENTS   then ELEMENTS times "bits expected magnitude fine": prints 1 where it passes, else 0
//   flops B Hq Nq Nkv d causal   prints the FLOPs
//   sums GOT EXPECTED BOUND   of one row's log-sum-exp: prints 1 where it passes, else 0
//   reference B Hq Hkv Nq Nkv d causal DTYPE SCALE   of random inputs: prints Q, K and V as bits, then O, magnitude,
//               fine, log_sum_exp and its bound, and the scales of Q, K and V, a line each
//   no-memory   prints "bad_alloc" if reference() reports that its workers get no memory
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <thread>

#include "reference.h"

static bool starve = false;  // from here on no thread but the first one gets memory
static const std::thread::id first = std::this_thread::get_id();

void *operator new(size_t bytes) {
    if (starve && std::this_thread::get_id() != first) throw std::bad_alloc();
    if (void *memory = std::malloc(bytes ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept {
    std::free(memory);
}
void operator delete(void *memory, size_t) noexcept {
    std::free(memory);
}

int main() {
    std::string what;
    flash::Problem problem;
    std::cin >> what;
    if (what == "compare") {
        int dtype = 0;
        std::cin >> dtype >> problem.Nq;
        problem.dtype = static_cast<FlashDtype>(dtype);
        problem.B = problem.Hq = problem.Hkv = problem.d_head = 1;
        std::vector<uint16_t> O(problem.Nq);
        flash::Reference reference;
        for (auto *values : {&reference.O, &reference.magnitude, &reference.fine}) values->resize(O.size());
        for (size_t i = 0; i < O.size(); ++i) {
            std::string expected, magnitude, fine;  // istream reads no hexadecimal numbers
            std::cin >> O[i] >> expected >> magnitude >> fine;
            reference.O[i] = std::strtod(expected.c_str(), nullptr);
            reference.magnitude[i] = std::strtod(magnitude.c_str(), nullptr);
            reference.fine[i] = std::strtod(fine.c_str(), nullptr);
        }
        std::printf("%d\n", flash::compare(problem, O, reference).passed);
    } else if (what == "flops") {
        std::cin >> problem.B >> problem.Hq >> problem.Nq >> problem.Nkv >> problem.d_head >> problem.causal;
        std::printf("%.17g\n", problem.flops());
    } else if (what == "sums") {
        std::string got, expected, bound;
        std::cin >> got >> expected >> bound;
        flash::Reference reference;
        reference.log_sum_exp = {std::strtod(expected.c_str(), nullptr)};
        reference.log_sum_exp_bound = {std::strtod(bound.c_str(), nullptr)};
        std::printf("%d\n", flash::compare_log_sum_exp(problem, {std::strtof(got.c_str(), nullptr)}, reference).passed);
    } else if (what == "reference") {
        std::cin >> problem.B >> problem.Hq >> problem.Hkv >> problem.Nq >> problem.Nkv >> problem.d_head;
        int dtype = 0;
        std::cin >> problem.causal >> dtype >> problem.scale;
        problem.dtype = static_cast<FlashDtype>(dtype);
        const flash::Inputs inputs = flash::random_inputs(problem, 1);
        const flash::Reference reference = flash::reference(problem, inputs);
        for (const auto &bits : {inputs.Q, inputs.K, inputs.V}) {
            for (uint16_t one : bits) std::printf("%u ", one);
            std::printf("\n");
        }
        for (const auto &values :
             {reference.O, reference.magnitude, reference.fine, reference.log_sum_exp, reference.log_sum_exp_bound}) {
            for (double one : values) std::printf("%.17g ", one);
            std::printf("\n");
        }
        for (const auto &values : {inputs.Q_scales, inputs.K_scales, inputs.V_scales}) {  // empty lines but of e4m3
            for (float one : values) std::printf("%.9g ", one);
            std::printf("\n");
        }
    } else if (what == "no-memory") {
        const flash::Inputs inputs = flash::random_inputs(problem, 0);
        starve = true;
        try {
            flash::reference(problem, inputs);
        } catch (const std::bad_alloc &) {
            std::printf("bad_alloc\n");
        }
    }
}
