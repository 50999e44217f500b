// Programmatic dependent launches of which one between others waits for nothing, and the same where it waits.
//
//     chains NAME 0|1        does what NAME's function does, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` other lines that may be named.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "../fault_run.h"

constexpr int kCount = 1000;

// clang-format off
#define KERNEL(name) __global__ void name(int *to, const int *from)
#define PLACE const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < kCount)

// The launch between the two is over soon, and the last one waits for that one alone.
KERNEL(results) { cudaTriggerProgrammaticLaunchCompletion(); PLACE to[i] = i; }  //~ one_between_waits_for_nothing
template <bool mended> KERNEL(clears) {
    cudaTriggerProgrammaticLaunchCompletion();
    if (mended) cudaGridDependencySynchronize();
    PLACE to[i] = 0;
}
KERNEL(uses_results) {
    cudaGridDependencySynchronize();
    PLACE to[i] = from[i];  //! one_between_waits_for_nothing launch_race: read at chains.cu | wrote at chains.cu | Between them in the stream is a programmatic dependent launch that waits for nothing
}

// So is one that touches nothing.
KERNEL(still_read) { cudaTriggerProgrammaticLaunchCompletion(); PLACE to[i] = from[i]; }  //~ overwritten_behind_one_that_waits_for_nothing
template <bool mended> KERNEL(touches_nothing) {
    if (mended) cudaGridDependencySynchronize();
}
KERNEL(overwrites) {
    cudaGridDependencySynchronize();
    PLACE to[i] = 1;  //! overwritten_behind_one_that_waits_for_nothing launch_race: write at chains.cu | read at chains.cu | each dependent launch must execute
}
// clang-format on

void launch_dependent(void (*kernel)(int *, const int *), int *to, const int *from) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = 8;
    config.blockDim = 128;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, to, from);
}

struct Work {
    int *a, *b, *c;
};

template <bool mended>
void one_between_waits_for_nothing(Work &w) {
    results<<<8, 128>>>(w.a, nullptr);
    launch_dependent(clears<mended>, w.b, nullptr);
    launch_dependent(uses_results, w.c, w.a);
}

template <bool mended>
void overwritten_behind_one_that_waits_for_nothing(Work &w) {
    still_read<<<8, 128>>>(w.c, w.a);
    launch_dependent(touches_nothing<mended>, w.b, nullptr);
    launch_dependent(overwrites, w.a, nullptr);
}

struct Case {
    const char *name;
    void (*run[2])(Work &);
};
#define CASE(name)                  \
    {                               \
        #name, {                    \
            name<false>, name<true> \
        }                           \
    }
static const Case cases[] = {
    CASE(one_between_waits_for_nothing),
    CASE(overwritten_behind_one_that_waits_for_nothing),
};

int main(int argc, char **argv) {
    Work w;
    for (int **p : {&w.a, &w.b, &w.c}) cudaMalloc(p, kCount * sizeof(int));
    for (const Case &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, w.c, kCount * sizeof(int),
                [&](bool) {
                    for (int *p : {w.a, w.b, w.c}) cudaMemset(p, 0, kCount * sizeof(int));
                    cudaDeviceSynchronize();
                },
                [&](bool mended) { it.run[mended](w); });
    return 2;
}
