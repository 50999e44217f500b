"""Calls in kernels: recursion, pointers to functions, virtual functions, structs by value, alloca and the stack."""

import numpy as np
import pytest
from cudart import run_program, run_ptx
from execution_kernels import PTX_HEAD, hazard, ints, kernels_ptx, line_of, zeros


@pytest.fixture(scope="module")
def ptx():
    return kernels_ptx()


def test_recursion(ptx):
    fibonacci = [0, 1]
    while len(fibonacci) < 13:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    np.testing.assert_array_equal(ints(ptx, "recursion"), [fibonacci[t % 13] for t in range(64)])


@pytest.mark.simulator_only
def test_endless_recursion_is_an_error(ptx):
    found = hazard(ptx, "overflow", "illegal_instruction", block=1)
    assert "stack overflow" in found["message"] and found["line"] == line_of("bottomless(n + 1, p)")


def test_calls_through_pointers(ptx):
    expected = [[2 * t, t + 100, -t][t % 3] for t in range(64)]
    np.testing.assert_array_equal(ints(ptx, "pointers"), expected)


@pytest.mark.simulator_only
def test_a_call_through_a_wild_pointer_is_an_error(ptx):
    found = hazard(ptx, "wild_pointer", "illegal_instruction", args=[zeros(), np.uint64(0x1234)])
    assert "no function" in found["message"]


def test_parameters_in_registers():
    """Of functions written by hand: nvcc's are of .param. Two of them, so that each has its own place."""
    ptx = """.version 8.0
    .target sm_80
    .address_size 64
    .func (.reg .u32 r) less(.reg .u32 x, .reg .u32 y) { sub.u32 r, x, y; ret; }
    .visible .entry k(.param .u64 out) {
        .reg .u64 p;
        .reg .u32 a;
        ld.param.u64 p, [out];
        mov.u32 a, %ctaid.x;
        add.u32 a, a, 9;
        call (a), less, (a, 5);
        st.global.u32 [p], a;
        ret;
    }"""
    assert run_ptx(ptx, "k", 1, 1, [np.zeros(1, np.uint32)]).check().outputs[0][0] == 4


def test_structs_by_value(ptx):
    expected = [1000 * t + (t % 40 + t + 3) % 40 for t in range(64)]
    np.testing.assert_array_equal(ints(ptx, "structs"), expected)


def test_addresses_of_local_variables(ptx):
    np.testing.assert_array_equal(ints(ptx, "local_addresses"), [t * t - t for t in range(64)])


VIRTUAL = """
#include <cstdio>
struct Shape { __device__ virtual int area(int x) const { return x; } };
struct Square : Shape { __device__ int area(int x) const override { return x * x; } };
__global__ void k(int *p) {
    Shape a; Square b;
    const Shape *s = threadIdx.x & 1 ? static_cast<const Shape *>(&b) : &a;
    p[threadIdx.x] = s->area(threadIdx.x);
}
int main() {
    int *p, h[64];
    cudaMalloc(&p, sizeof h);
    k<<<1, 64>>>(p);
    if (cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)) return 2;
    for (int i = 0; i < 64; ++i) if (h[i] != (i & 1 ? i * i : i)) return 1;
    puts("right");
}
"""


def test_virtual_functions():
    assert run_program(VIRTUAL).check().stdout == "right\n"


ALLOCA = r"""
#include <alloca.h>
#include <cstdio>
#include <cstdlib>
__device__ __noinline__ int reversed(int n, int seed) {
    int *p = static_cast<int *>(alloca(n * sizeof(int)));
    for (int i = 0; i < n; ++i) p[i] = seed + i;
    int sum = 0;
    for (int i = 0; i < n; ++i) sum = 3 * sum + p[n - 1 - i];
    return sum;
}
__device__ __noinline__ int nested(int depth) {
    volatile int *p = static_cast<int *>(alloca((depth + 1) * sizeof(int)));
    p[depth] = depth;
    const int below = depth ? nested(depth - 1) : 0;
    return 2 * below + p[depth];
}
__global__ void k(int *out, int n) {
    const int t = threadIdx.x;
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        volatile char *p = static_cast<char *>(alloca(n + i + t % 5));  // each lane takes another size
        p[0] = 7;
        p[n + i + t % 5 - 1] = 9;
        sum += reversed(n + t % 3, t) + p[0] + p[n + i + t % 5 - 1];
    }
    out[blockIdx.x * blockDim.x + t] = sum + nested(t % 4);
}
int main(int argc, char **argv) {
    const int n = std::atoi(argv[1]);
    if (argc > 2 && cudaDeviceSetLimit(cudaLimitStackSize, std::atoi(argv[2]))) return 4;
    int *d, h[128];
    cudaMalloc(&d, sizeof h);
    k<<<2, 64>>>(d, n);
    const cudaError_t error = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    if (error) return printf("%s\n", cudaGetErrorName(error)), 3;
    for (int i = 0; i < 128; ++i) {
        const int t = i % 64, m = n + t % 3;
        unsigned sum = 0, want = 0;
        for (int j = 0; j < m; ++j) sum = 3 * sum + t + m - 1 - j;
        for (int j = 0; j <= t % 4; ++j) want = 2 * want + j;
        if (unsigned(h[i]) != 3 * (sum + 16) + want) return printf("%d: %d\n", i, h[i]), 1;
    }
    puts("right");
}
"""


def test_alloca():
    result = run_program(ALLOCA, [40], report=True)
    assert result.check().stdout == "right\n" and result.hazards == []


@pytest.mark.simulator_only
def test_alloca_beyond_the_stack_is_an_error_and_its_limit_can_be_raised():
    result = run_program(ALLOCA, [800], report=True)
    assert result.returncode == 3 and result.stdout == "cudaErrorIllegalInstruction\n"
    (found,) = result.hazards
    assert found["kind"] == "illegal_instruction" and "stack overflow: alloca of" in found["message"]
    assert "cudaLimitStackSize" in found["message"] and found["line"]
    assert run_program(ALLOCA, [800, 16384]).check().stdout == "right\n"


STACK = """
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 0;
AGAIN:
    stacksave.u64 %rd2;
    mov.u64 %rd3, 64;
    alloca.u64 %rd4, %rd3, 16;
    st.local.u32 [%rd4+60], %r1;
    ld.local.u32 %r2, [%rd4+READ];
    RESTORE
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 1000;
    @%p bra AGAIN;
    st.global.u32 [%rd1], %r2;
    ret;
}"""


@pytest.mark.simulator_only
def test_the_stack_saved_and_restored():
    def run(read, restore):
        text = STACK.replace("READ", str(read)).replace("RESTORE", restore)
        return run_ptx(PTX_HEAD + text, "k", 1, 1, [zeros(1)], report=True)

    assert run(60, "stackrestore.u64 %rd2;").check().outputs[0][0] == 999
    assert "stack overflow: alloca of 64 bytes" in run(60, "").hazards[0]["message"]
    assert run(56, "stackrestore.u64 %rd2;").hazards[0]["kind"] == "uninitialized_variable"
    assert (
        "no stacksave of this function" in run(60, "mov.u64 %rd5, 4096; stackrestore.u64 %rd5;").hazards[0]["message"]
    )
