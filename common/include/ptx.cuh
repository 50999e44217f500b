// One documented function per PTX instruction that the stages use. Nothing else: swizzles, copy loops, fragments
// and softmax are the lessons, and stay in kernel.cu.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace ptx {

// cvta.to.shared: the 32-bit address within shared memory that ldmatrix and cp.async take.
__device__ inline uint32_t shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ldmatrix.x4: four 8x8 matrices of 16-bit elements from shared memory. Each lane gives the address of one row of 16
// bytes: lanes 0-7 the rows of matrix 0, lanes 8-15 of matrix 1, and so on. Afterwards matrix[i] of lane l holds
// elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1) of matrix i.
__device__ inline void ldmatrix_x4(uint32_t (&matrix)[4], uint32_t row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(row_address)
                 : "memory");
}

// ldmatrix.x4.trans: the same, each 8x8 matrix transposed on the way: matrix[i] of lane l holds elements
// (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4) of matrix i.
__device__ inline void ldmatrix_x4_trans(uint32_t (&matrix)[4], uint32_t row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(row_address)
                 : "memory");
}

// mma.m16n8k16: C += A B on the tensor cores, by the whole warp. A: [16, 16], B: [16, 8], both 16-bit; C: [16, 8],
// fp32. Which lane holds which element is drawn in stages/04_tensor_cores/README.md.
template <typename T>
__device__ void mma_m16n8k16(float (&C)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]);

template <>
__device__ inline void mma_m16n8k16<__half>(float (&C)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

template <>
__device__ inline void mma_m16n8k16<__nv_bfloat16>(float (&C)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

// cp.async.cg: starts a copy of 16 bytes from global to shared memory, past the registers and the L1 cache; the thread
// goes on at once. The bytes are there only after cp_async_wait by this thread, and for others after a barrier behind
// that. shared: an address as shared_address gives it.
__device__ inline void cp_async_16(uint32_t shared, const void *global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
// bytes: 16, or 0: then nothing is read and 16 zeros arrive.
__device__ inline void cp_async_16(uint32_t shared, const void *global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}
__device__ inline void cp_async_16(void *shared, const void *global) {
    cp_async_16(shared_address(shared), global);
}

// cp.async.commit_group: closes a batch: this thread's copies since the last commit (possibly none).
__device__ inline void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// cp.async.wait_group N: waits until at most the N newest of this thread's batches are still in flight.
template <int newest>
__device__ inline void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
}

// ex2.approx: 2 to the power of x, with a relative error of about 2^-22. Subnormal numbers count as 0 (.ftz), which
// spares the two instructions that would scale them; exp2(-infinity) is 0.
__device__ inline float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// rcp.approx: 1 / x, off by at most one unit in the last place. 1.0f / x is never off by more than half of one, for
// which it takes a dozen instructions and a branch to some more.
__device__ inline float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace ptx
