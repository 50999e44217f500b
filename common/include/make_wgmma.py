"""Writes wgmma.cuh beside this file: a function for each shape of wgmma that a stage uses. python make_wgmma.py

One wgmma names each of its accumulators, 32 to 128 registers: a line that nobody should write, or read, by hand.
"""

from pathlib import Path

TYPES = {"__half": "f16", "__nv_bfloat16": "bf16", "e4m3": "e4m3"}  # of numbers.cuh: PTX's
SHARED_A = (128,)  # columns of D = A B with A and B in shared memory, both K-major
REGISTER_A = (64, 128)  # with A in registers, and B in shared memory, MN-major, of the 16-bit types
# The same of e4m3: B is K-major, it knows no other. d_head columns, and with eight columns of ones.
REGISTER_A_E4M3 = (64, 72, 128, 136)
REGISTER_A_K_MAJOR = (128,)  # the same with B K-major, of the 16-bit types

HEADER = """\
// Written by make_wgmma.py: one function for each shape of wgmma that a stage uses.
//
// wgmma.mma_async.m64nNk16: issues D += A B for the warpgroup's 128 threads on the tensor cores.
// A: [64, 16], B: [16, N], both 16-bit; D: [64, N], fp32. Of e4m3, a byte each, k is 32: A [64, 32], B [32, N].
// D[i] of lane l in warp w of the group is row 16 w + l / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (l % 4) + i % 2.
// accumulate: false takes D as 0, whatever it holds.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "numbers.cuh"  // e4m3

// clang-format off

namespace ptx {

// A and B in shared memory, by descriptor, K-major both: B is [N, 16] (e4m3: [N, 32]) there.
template <typename T, int N>
__device__ void wgmma_ss(float (&D)[N / 2], uint64_t A, uint64_t B, bool accumulate);

// A in registers: A[i] of a lane holds two elements of row 16 w + l / 4 + 8 (i % 2), columns 2 (l % 4) + 8 (i / 2) and
// the next. B in shared memory, by descriptor, MN-major: [16, N] there, rows of V as they are.
// Of e4m3 A[i] holds four elements of that row, columns 4 (l % 4) + 16 (i / 2) and the next three, and B is K-major:
// [N, 32] there, V transposed.
template <typename T, int N>
__device__ void wgmma_rs(float (&D)[N / 2], const uint32_t (&A)[4], uint64_t B, bool accumulate);

// The same with B K-major, of 16-bit elements, too: [N, 16] there, rows of K as they are.
template <typename T, int N>
__device__ void wgmma_rs_k_major(float (&D)[N / 2], const uint32_t (&A)[4], uint64_t B, bool accumulate);
"""


def function(kind: str, name: str, dtype: str, columns: int) -> str:
    """One specialisation. kind: ss, rs or rs_k_major."""
    count = columns // 2  # of accumulators
    D = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"+f"(D[{i}])' for i in range(count))
    if kind == "ss":
        parameter, A, inputs, after = "uint64_t A", f"%{count}", '"l"(A)', count + 1
        layout = ", 0, 0"  # neither operand is transposed
    else:
        parameter, after = "const uint32_t (&A)[4]", count + 4
        A = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}"
        inputs = ", ".join(f'"r"(A[{i}])' for i in range(4))
        layout = ", 1" if kind == "rs" else ", 0"  # whether B is
    k = 16
    if dtype == "e4m3":
        k, layout = 32, ""  # an operand is 32 bytes deep; of bytes none can be transposed
    return f"""
template <>
__device__ inline void wgmma_{kind}<{name}, {columns}>(float (&D)[{count}], {parameter}, uint64_t B, bool accumulate) {{
    asm volatile(
        "{{\\n.reg .pred accumulate;\\nsetp.ne.b32 accumulate, %{after + 1}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{columns}k{k}.f32.{dtype}.{dtype} "
        "{{{D}}}, "
        "{A}, %{after}, accumulate, 1, 1{layout};\\n}}"
        : {outputs}
        : {inputs}, "l"(B), "r"(static_cast<int>(accumulate))
        : "memory");
}}
"""


def text() -> str:
    functions = [function("ss", name, dtype, n) for n in SHARED_A for name, dtype in TYPES.items()]
    sixteen_bits = [(name, dtype) for name, dtype in TYPES.items() if dtype != "e4m3"]
    functions += [function("rs", name, dtype, n) for n in REGISTER_A for name, dtype in sixteen_bits]
    functions += [function("rs", "e4m3", "e4m3", n) for n in REGISTER_A_E4M3]
    functions += [function("rs_k_major", name, dtype, n) for n in REGISTER_A_K_MAJOR for name, dtype in sixteen_bits]
    return HEADER + "".join(functions) + "\n}  // namespace ptx\n"


if __name__ == "__main__":
    Path(__file__).with_name("wgmma.cuh").write_text(text())
