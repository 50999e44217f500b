// A file of several programs: the first argument names one, whose main() stands in a namespace of that name.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

struct Program {
    const char *name;
    int (*main)();
};

#define PROGRAM(name)     \
    Program {             \
        #name, name::main \
    }

inline int run_named(int argc, char **argv, std::initializer_list<Program> programs) {
    for (const Program &one : programs)
        if (argc == 2 && !std::strcmp(argv[1], one.name)) return one.main();
    std::printf("Name one of the programs:");
    for (const Program &one : programs) std::printf(" %s", one.name);
    std::printf("\n");
    return 2;
}

// For programs with faults: two arrays of 4,096 floats on the device, of zeros, and of whole numbers from 1 to 57.
struct Arrays {
    float *out, *in;
};

inline Arrays arrays() {
    static float numbers[4096];
    for (int i = 0; i < 4096; ++i) numbers[i] = 1 + i % 57;
    Arrays made;
    cudaMalloc(&made.in, sizeof numbers);
    cudaMalloc(&made.out, sizeof numbers);
    cudaMemcpy(made.in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    cudaMemset(made.out, 0, sizeof numbers);
    return made;
}

// How a program with a fault ends: what became of its last launch, and 3 where that failed.
inline int ended() {
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
