// What the tests of the API expect of a condition and of a call's error: else the line and exit status 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) {                                               \
            std::printf("line %d: not true: %s\n", __LINE__, #condition); \
            std::exit(1);                                                 \
        }                                                                 \
    } while (0)
#define OK(call)                                                                        \
    do {                                                                                \
        const cudaError_t code_ = (call);                                               \
        if (code_ != cudaSuccess) {                                                     \
            std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(code_)); \
            std::exit(1);                                                               \
        }                                                                               \
    } while (0)
#define FAILS(call, code)                                                              \
    do {                                                                               \
        const cudaError_t got_ = (call);                                               \
        if (got_ != (code)) {                                                          \
            std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(got_)); \
            std::exit(1);                                                              \
        }                                                                              \
    } while (0)
