// Refuses to run on a CPU that lacks the instructions this library was compiled for: an illegal instruction
// somewhere in a kernel would be much harder to understand.
#if defined(__x86_64__) && defined(WARPSIM_LEVEL)

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

__attribute__((constructor(101))) void check_cpu() {
    __builtin_cpu_init();
    bool fits = true;
    if (std::strcmp(WARPSIM_LEVEL, "x86-64-v3") == 0 || std::strcmp(WARPSIM_LEVEL, "x86-64-v4") == 0) {
        fits = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    }
    if (std::strcmp(WARPSIM_LEVEL, "x86-64-v4") == 0) {
        fits = fits && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
    if (fits) return;
    std::fprintf(stderr, "warpsim was built for " WARPSIM_LEVEL
                         " and this CPU lacks its instructions: build it here, or with -DWARPSIM_MARCH=x86-64\n");
    std::exit(1);
}

}  // namespace

#endif
