// Inline assembly: every kind of register, what it changes in place, several results, labels and declarations within.
#include <cuda_runtime.h>

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    const unsigned a = in[threadIdx.x], b = in[threadIdx.x + 64];
    unsigned *to = out + threadIdx.x * 16;
    unsigned low, high;
    asm("mul.lo.u32 %0, %2, %3;\n\tmul.hi.u32 %1, %2, %3;" : "=&r"(low), "=&r"(high) : "r"(a), "r"(b));
    to[0] = low, to[1] = high;
    unsigned long long wide = a;
    asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(wide) : "r"(b), "n"(12));
    to[2] = unsigned(wide), to[3] = unsigned(wide >> 32);
    unsigned short half;
    asm("{ .reg .b16 t; add.u16 t, %1, %1; mov.b16 %0, t; }" : "=h"(half) : "h"((unsigned short)(a)));
    to[4] = half;
    float f[4] = {a * 1.0f, b * 1.0f, 2.0f, 3.0f}, before = f[0];
#pragma unroll 1
    for (int i = 0; i < 3; ++i)  // registers that are changed in place, turn after turn
        asm volatile("add.f32 %0, %0, %4; add.f32 %1, %1, %0; mul.f32 %2, %2, %0; sub.f32 %3, %3, %2;"
                     : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
                     : "f"(1.5f));
    for (int i = 0; i < 4; ++i) to[5 + i] = __float_as_uint(f[i]);
    to[9] = __float_as_uint(before);
    double d = a * 0.5;
    asm("add.f64 %0, %0, %1;" : "+d"(d) : "d"(b * 0.25));
    to[10] = unsigned(d);
    unsigned turns = 0;
    asm volatile("{\n.reg .pred more;\nagain:\nadd.u32 %0, %0, 1;\nsetp.lt.u32 more, %0, %1;\n@more bra again;\n}"
                 : "+r"(turns)
                 : "r"(a & 31)
                 : "memory");
    to[11] = turns;
    unsigned x = a, kept = a;  // the old value is needed behind the change
    asm("xor.b32 %0, %0, %1;" : "+r"(x) : "r"(b));
    to[12] = x, to[13] = kept, to[14] = x + kept;
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to + 15), "r"(b + 1) : "memory");
}
