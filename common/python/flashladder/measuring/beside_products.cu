// Clocks of instructions while the tensor cores multiply, and while they do not. On one multiprocessor warpgroup 0
// issues wgmma after wgmma, warpgroup 1 runs one instruction over and over on 32 registers: one warp of each stands on
// each of the four schedulers. Prints a JSON list of rows.

#include <cstdio>
#include <cstdlib>

#include "ptx.cuh"
#include "ptx_hopper.cuh"
#include "wgmma.cuh"

enum Instruction { nothing, fma32, add32, max32, max3_s32, ex2, cvt_bf16x2, cvt_e4m3x2, instructions };
enum Products { none, bf16, e4m3_bytes, products };
constexpr const char *instruction_names[] = {"",         "fma.f32", "add.f32",    "max.f32",
                                             "max3.s32", "ex2.f32", "cvt.bf16x2", "cvt.e4m3x2"};
constexpr const char *product_names[] = {"none", "bf16", "e4m3"};
constexpr int rounds = 2048, registers = 32, batch = 8;  // each round has an instruction for each register

struct Clocks {
    long long instructions, products, batches;
};

// One instruction, whose result depends on the one that the register had 32 instructions before.
template <Instruction instruction>
__device__ void run(float &x, float y) {
    if constexpr (instruction == fma32) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(y));
    if constexpr (instruction == add32) asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    if constexpr (instruction == max32) asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    if constexpr (instruction == max3_s32)  // of three: ptxas makes one instruction of these two
        asm volatile("{\n.reg .s32 two;\nmax.s32 two, %0, %1;\nmax.s32 %0, two, %2;\n}"
                     : "+r"(reinterpret_cast<int &>(x))
                     : "r"(__float_as_int(y)), "r"(__float_as_int(-y)));
    if constexpr (instruction == ex2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    uint32_t packed = 0;
    if constexpr (instruction == cvt_bf16x2)
        asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(y), "f"(x));
    if constexpr (instruction == cvt_e4m3x2) packed = ptx::pack_e4m3(y, y, y, x);  // two of them
    if constexpr (instruction >= cvt_bf16x2) x = __uint_as_float(packed);
}

template <Instruction instruction, Products kind>
__global__ void __launch_bounds__(256, 1) beside(float *sink, Clocks *clocks, float y) {
    extern __shared__ __align__(1024) unsigned char bytes[];  // A: [64, 128 bytes], B: [128, 128 bytes]
    __shared__ volatile bool done;
    for (int i = threadIdx.x; i < 24576 / 4; i += 256) reinterpret_cast<uint32_t *>(bytes)[i] = 0x38383838;
    done = false;
    ptx::fence_proxy_async();
    __syncthreads();
    const long long began = clock64();
    if (threadIdx.x < 128) {
        long long batches = 0;
        if constexpr (kind != none) {
            const uint64_t A = ptx::matrix_descriptor(bytes, 0, 1024),
                           B = ptx::matrix_descriptor(bytes + 8192, 0, 1024);
            float D[64] = {};
            while (!done) {
                ptx::wgmma_fence(D);
#pragma unroll
                for (int k = 0; k < batch; ++k)  // 32 bytes of a row each
                    if constexpr (kind == bf16)
                        ptx::wgmma_ss<__nv_bfloat16, 128>(D, A + k % 4 * 2, B + k % 4 * 2, true);
                    else
                        ptx::wgmma_ss<e4m3, 128>(D, A + k % 4 * 2, B + k % 4 * 2, true);
                ptx::wgmma_commit();
                ptx::wgmma_wait<0>(D);
                ++batches;
            }
            float sum = 0;
            for (float x : D) sum += x;
            sink[threadIdx.x] = sum;
        }
        if (threadIdx.x == 0) clocks->products = clock64() - began, clocks->batches = batches;
    } else {
        float x[registers];
        for (int i = 0; i < registers; ++i) x[i] = y * i + threadIdx.x;
        if constexpr (instruction == nothing)
            while (clock64() - began < rounds * registers) __nanosleep(100);
        else
#pragma unroll 1
            for (int round = 0; round < rounds; ++round)
#pragma unroll
                for (int i = 0; i < registers; ++i) run<instruction>(x[i], y);
        if (threadIdx.x == 128) clocks->instructions = clock64() - began;
        done = true;
        float sum = 0;
        for (float value : x) sum += value;
        sink[threadIdx.x] = sum;
    }
}

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(1);
}

template <Instruction instruction, Products kind>
static void measure(float *sink, Clocks *clocks) {
    for (int run = 0; run < 2; ++run) beside<instruction, kind><<<1, 256, 24576>>>(sink, clocks, 0.5f);  // 1: warm
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    Clocks got;
    check(cudaMemcpy(&got, clocks, sizeof got, cudaMemcpyDeviceToHost));
    const bool first = instruction == nothing && kind == bf16;
    printf("%s\n{\"instruction\": \"%s\", \"products\": \"%s\"", first ? "" : ",", instruction_names[instruction],
           product_names[kind]);
    if (instruction != nothing)
        printf(", \"clocks\": %.3f",
               double(got.instructions) / rounds / registers / (instruction == cvt_e4m3x2 ? 2 : 1));
    if (kind != none) printf(", \"clocks_of_a_product\": %.2f", double(got.products) / got.batches / batch);
    printf("}");
}

template <Instruction instruction>
static void measure_beside_all(float *sink, Clocks *clocks) {
    if constexpr (instruction != nothing) measure<instruction, none>(sink, clocks);
    measure<instruction, bf16>(sink, clocks);
    measure<instruction, e4m3_bytes>(sink, clocks);
    if constexpr (instruction + 1 < instructions) measure_beside_all<Instruction(instruction + 1)>(sink, clocks);
}

int main() {
    float *sink;
    Clocks *clocks;
    check(cudaMalloc(&sink, 256 * sizeof *sink));
    check(cudaMalloc(&clocks, sizeof *clocks));
    printf("[");
    measure_beside_all<nothing>(sink, clocks);
    printf("\n]\n");
}
