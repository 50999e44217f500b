"""Writes wgmma_backward.cuh beside this file: the shapes of wgmma that the stages of the backward pass use, besides
those in wgmma.cuh. python make_wgmma_backward.py
"""

from pathlib import Path

TYPES = {"__half": "f16", "__nv_bfloat16": "bf16"}
K_MAJOR = (64, 80, 128)  # columns of D: rows of Q or dO in a tile
TRANSPOSED = (64, 80)  # columns of dQ transposed, per warpgroup
IN_WGMMA_CUH = (128,)  # wgmma_ss with as many columns stands there

HEADER = """\
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
"""


def function(name: str, dtype: str, columns: int, transposed: bool, first: bool) -> str:
    """One specialisation."""
    count = columns // 2  # of accumulators
    kind = "ss" + "_transposed" * transposed + "_first" * first
    registers = ", ".join(f"%{i}" for i in range(count))
    constraint = "=f" if first else "+f"
    outputs = ", ".join(f'"{constraint}"(D[{i}])' for i in range(count))
    condition = f"setp.{'ne' if first else 'eq'}.b32 accumulate, 0, 0"
    parameter, argument = "", ""
    if not transposed and not first:  # wgmma_ss takes it as a parameter
        condition = f"setp.ne.b32 accumulate, %{count + 2}, 0"
        parameter, argument = ", bool accumulate", ', "r"(static_cast<int>(accumulate))'
    return f"""
template <>
__device__ inline void wgmma_{kind}<{name}, {columns}>(float (&D)[{count}], uint64_t A, uint64_t B{parameter}) {{
    asm volatile(
        "{{\\n.reg .pred accumulate;\\n{condition};\\n"
        "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype} "
        "{{{registers}}}, "
        "%{count}, %{count + 1}, accumulate, 1, 1, {int(transposed)}, 0;\\n}}"
        : {outputs}
        : "l"(A), "l"(B){argument}
        : "memory");
}}
"""


def text() -> str:
    functions = []
    for name, dtype in TYPES.items():
        for n in K_MAJOR:
            functions.append(function(name, dtype, n, transposed=False, first=True))
            if n not in IN_WGMMA_CUH:
                functions.append(function(name, dtype, n, transposed=False, first=False))
        for n in TRANSPOSED:
            functions += [function(name, dtype, n, transposed=True, first=first) for first in (True, False)]
    return HEADER + "".join(functions) + "\n}  // namespace ptx\n"


if __name__ == "__main__":
    Path(__file__).with_name("wgmma_backward.cuh").write_text(text())
