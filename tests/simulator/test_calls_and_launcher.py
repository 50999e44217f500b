"""Functions without arguments and local memory, constant addresses, and programs without kernels."""

import subprocess

import pytest
from cudart import BUILD, build_program, run_program

pytestmark = pytest.mark.simulator_only

CALLS = """
#include <cstdio>
__device__ int counter;
__device__ __noinline__ void deeper() { atomicAdd(&counter, 1); }
__device__ __noinline__ void bump() { deeper(); deeper(); }
__global__ void count() { bump(); deeper(); }
int main() {
    count<<<1, 32>>>();
    int value = 0;
    cudaMemcpyFromSymbol(&value, counter, sizeof value);
    printf("%d %s\\n", value, cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


@pytest.mark.parametrize("flags", [[], ["-G"]], ids=["optimised", "debug"])
def test_calls_of_functions_without_arguments_need_no_stack(flags):
    result = run_program(CALLS, flags=flags).check()
    assert result.stdout == "96 cudaSuccess\n"


ASSERTION = """
#include <cassert>
__global__ void check(int n) {
    assert(threadIdx.x < n);
}
int main() {
    check<<<1, 32>>>(3);
    return cudaDeviceSynchronize() == cudaErrorAssert ? 3 : 1;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("flags", [[], ["-G"]], ids=["optimised", "debug"])
def test_a_failed_assertion_has_the_line_of_its_kernel(flags):
    result = run_program(ASSERTION, flags=flags, report=True)
    (hazard,) = result.hazards
    assert (result.returncode, hazard["kind"], hazard["line"]) == (3, "assertion", 4)
    assert "assert(threadIdx.x < n);" in result.stderr, "the line is not printed"


CONSTANT = """
#include <cstdio>
__constant__ int constant[4];
__device__ int global[4];
__global__ void ask(int *out) {
    __shared__ int shared[4];
    int local[4];
    const void *places[] = {&constant[3], &global[3], &shared[3], &local[3], out};
    for (int i = 0; i < 5; ++i) out[i] = __isConstant(places[i]);
}
int main() {
    int *out;
    cudaMallocManaged(&out, 20);
    ask<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 5; ++i) printf("%d", out[i]);
    puts("");
}
"""


@pytest.mark.long
def test_constant_addresses_are_known_as_such():
    result = run_program(CONSTANT).check()
    assert result.stdout == "10000\n"


NO_KERNEL = """
#include <cstdio>
#include <cuda_runtime.h>
int main() {
    int devices = 0;
    printf("%d ", cudaGetDeviceCount(&devices));
    printf("%d\\n", devices);
}
"""


def launch(program):
    return subprocess.run([BUILD / "bin" / "warpsim", program], capture_output=True, text=True)


def test_a_program_without_kernels_runs(tmp_path):
    """Compiled as C++, it has nothing but the empty machine code that nvcc links into every program."""
    source = tmp_path / "query.cpp"
    source.write_text(NO_KERNEL)
    done = launch(build_program(source, architecture=("-arch=sm_80",)))
    assert (done.returncode, done.stdout) == (0, "0 1\n"), done.stderr


@pytest.mark.long
@pytest.mark.parametrize("what", ["__global__ void nothing() {}", "__device__ int number;"])
def test_a_program_with_machine_code_alone_is_still_refused(what):
    done = launch(build_program(what + NO_KERNEL, architecture=("-gencode", "arch=compute_80,code=sm_80")))
    assert done.returncode == 126 and "has no PTX, only machine code for sm_80: compile it" in done.stderr
