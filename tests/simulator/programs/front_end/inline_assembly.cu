// Hand-written assembly as kernels have it: labels and registers that repeat from block to block, guards, vectors.
#include <cstdint>

__device__ __forceinline__ int steps(int from) {
    int count;
    asm volatile(
        "{\n"
        "  .reg .pred done;\n"
        "  .reg .b32 value;\n"
        "  mov.b32 value, %1;\n"
        "  mov.b32 %0, 0;\n"
        "LOOP:\n"
        "  add.s32 %0, %0, 1;\n"
        "  shr.s32 value, value, 1;\n"
        "  setp.eq.s32 done, value, 0;\n"
        "  @!done bra LOOP;\n"
        "}\n"
        : "=r"(count)
        : "r"(from));
    return count;
}

__global__ void assembly(int *out, const int4 *in, float *floats) {
    __shared__ int4 tile[32];
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x));
    int4 v;
    asm volatile("ld.global.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(in));
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
    out[threadIdx.x] = steps(v.x) + steps(v.y) + steps(tile[0].x);
    asm volatile(
        "{ .reg .pred p, q; .reg .b32 lane; mov.u32 lane, %%laneid; setp.ne.b32 q, lane, 0; setp.lt.or.f32 p|q, %0, "
        "0f3F800000, !q; @p st.global.f32 [%1+4], 0f40490FDB; }" ::"f"(floats[0]),
        "l"(floats));
    asm volatile("{ .reg .b64 pair; mov.b64 pair, {%0, %1}; st.global.b64 [%2], pair; }" ::"r"(v.x), "r"(v.y),
                 "l"(floats));
}
