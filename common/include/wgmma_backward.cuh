// Written by make_wgmma_backward.py: the shapes of wgmma that the stages of the backward pass use besides those in
// wgmma.cuh, which tells how D lies in registers.
#pragma once

#include "wgmma.cuh"

// clang-format off

namespace ptx {

// D = A B, whatever D holds: the compiler need not keep registers for D before. A and B in shared memory, by
// descriptor, K-major both.
template <typename T, int N>
__device__ void wgmma_ss_first(float (&D)[N / 2], uint64_t A, uint64_t B);

// D += A B with A MN-major: [16, 64] in shared memory, rows of K as they are, for the transpose of K. B is K-major.
template <typename T, int N>
__device__ void wgmma_ss_transposed(float (&D)[N / 2], uint64_t A, uint64_t B);

// The same for D = A B.
template <typename T, int N>
__device__ void wgmma_ss_transposed_first(float (&D)[N / 2], uint64_t A, uint64_t B);

template <>
__device__ inline void wgmma_ss_first<__half, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss<__half, 64>(float (&D)[32], uint64_t A, uint64_t B, bool accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31])
        : "l"(A), "l"(B), "r"(static_cast<int>(accumulate))
        : "memory");
}

template <>
__device__ inline void wgmma_ss_first<__half, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss<__half, 80>(float (&D)[40], uint64_t A, uint64_t B, bool accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %42, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31]), "+f"(D[32]), "+f"(D[33]), "+f"(D[34]), "+f"(D[35]), "+f"(D[36]), "+f"(D[37]), "+f"(D[38]), "+f"(D[39])
        : "l"(A), "l"(B), "r"(static_cast<int>(accumulate))
        : "memory");
}

template <>
__device__ inline void wgmma_ss_first<__half, 128>(float (&D)[64], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39]), "=f"(D[40]), "=f"(D[41]), "=f"(D[42]), "=f"(D[43]), "=f"(D[44]), "=f"(D[45]), "=f"(D[46]), "=f"(D[47]), "=f"(D[48]), "=f"(D[49]), "=f"(D[50]), "=f"(D[51]), "=f"(D[52]), "=f"(D[53]), "=f"(D[54]), "=f"(D[55]), "=f"(D[56]), "=f"(D[57]), "=f"(D[58]), "=f"(D[59]), "=f"(D[60]), "=f"(D[61]), "=f"(D[62]), "=f"(D[63])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed_first<__half, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 1, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed<__half, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.eq.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 1, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed_first<__half, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 1, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed<__half, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.eq.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 1, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31]), "+f"(D[32]), "+f"(D[33]), "+f"(D[34]), "+f"(D[35]), "+f"(D[36]), "+f"(D[37]), "+f"(D[38]), "+f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_first<__nv_bfloat16, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss<__nv_bfloat16, 64>(float (&D)[32], uint64_t A, uint64_t B, bool accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31])
        : "l"(A), "l"(B), "r"(static_cast<int>(accumulate))
        : "memory");
}

template <>
__device__ inline void wgmma_ss_first<__nv_bfloat16, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss<__nv_bfloat16, 80>(float (&D)[40], uint64_t A, uint64_t B, bool accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %42, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31]), "+f"(D[32]), "+f"(D[33]), "+f"(D[34]), "+f"(D[35]), "+f"(D[36]), "+f"(D[37]), "+f"(D[38]), "+f"(D[39])
        : "l"(A), "l"(B), "r"(static_cast<int>(accumulate))
        : "memory");
}

template <>
__device__ inline void wgmma_ss_first<__nv_bfloat16, 128>(float (&D)[64], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, accumulate, 1, 1, 0, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39]), "=f"(D[40]), "=f"(D[41]), "=f"(D[42]), "=f"(D[43]), "=f"(D[44]), "=f"(D[45]), "=f"(D[46]), "=f"(D[47]), "=f"(D[48]), "=f"(D[49]), "=f"(D[50]), "=f"(D[51]), "=f"(D[52]), "=f"(D[53]), "=f"(D[54]), "=f"(D[55]), "=f"(D[56]), "=f"(D[57]), "=f"(D[58]), "=f"(D[59]), "=f"(D[60]), "=f"(D[61]), "=f"(D[62]), "=f"(D[63])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed_first<__nv_bfloat16, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 1, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed<__nv_bfloat16, 64>(float (&D)[32], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.eq.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 1, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed_first<__nv_bfloat16, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 1, 0;\n}"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3]), "=f"(D[4]), "=f"(D[5]), "=f"(D[6]), "=f"(D[7]), "=f"(D[8]), "=f"(D[9]), "=f"(D[10]), "=f"(D[11]), "=f"(D[12]), "=f"(D[13]), "=f"(D[14]), "=f"(D[15]), "=f"(D[16]), "=f"(D[17]), "=f"(D[18]), "=f"(D[19]), "=f"(D[20]), "=f"(D[21]), "=f"(D[22]), "=f"(D[23]), "=f"(D[24]), "=f"(D[25]), "=f"(D[26]), "=f"(D[27]), "=f"(D[28]), "=f"(D[29]), "=f"(D[30]), "=f"(D[31]), "=f"(D[32]), "=f"(D[33]), "=f"(D[34]), "=f"(D[35]), "=f"(D[36]), "=f"(D[37]), "=f"(D[38]), "=f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

template <>
__device__ inline void wgmma_ss_transposed<__nv_bfloat16, 80>(float (&D)[40], uint64_t A, uint64_t B) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.eq.b32 accumulate, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
        "%40, %41, accumulate, 1, 1, 1, 0;\n}"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]), "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]), "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]), "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]), "+f"(D[29]), "+f"(D[30]), "+f"(D[31]), "+f"(D[32]), "+f"(D[33]), "+f"(D[34]), "+f"(D[35]), "+f"(D[36]), "+f"(D[37]), "+f"(D[38]), "+f"(D[39])
        : "l"(A), "l"(B)
        : "memory");
}

}  // namespace ptx
