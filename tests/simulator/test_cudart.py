"""The test driver itself: a kernel's arguments arrive, its errors come back, its worker survives."""

import numpy as np
import pytest
from cudart import run_program, run_ptx

SCALE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u64 extra)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [data];
    ld.param.f32 %f1, [factor];
    ld.param.u64 %rd2, [extra];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.f32 %f2, [%rd1];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""


def test_arguments_and_outputs():
    data = np.arange(64, dtype=np.float32)
    result = run_ptx(SCALE, "scale", 1, 64, [data, 2.5, np.uint64(0)]).check()
    np.testing.assert_array_equal(result.outputs[0], data * np.float32(2.5))


def test_unknown_kernel_is_an_error():
    result = run_ptx(SCALE, "nonesuch", 1, 32, [np.zeros(32, np.float32)])
    assert result.error_name == "cudaErrorSymbolNotFound" and result.failed_call == "cudaLibraryGetKernel"


@pytest.mark.simulator_only
def test_fault_is_reported_and_the_next_call_works():
    data = np.ones(32, np.float32)
    bad = run_ptx(SCALE, "scale", 1, 32, [data, 2.0, np.uint64(4)], report=True)
    assert not bad.ok and bad.failed_call == "cudaDeviceSynchronize"
    assert [h["kind"] for h in bad.hazards] == ["out_of_bounds"]
    good = run_ptx(SCALE, "scale", 1, 32, [data, 2.0, np.uint64(0)]).check()
    assert (good.outputs[0] == 2).all()


def test_program():
    source = """
        #include <cstdio>
        __global__ void hello(int n) { printf("thread %d of %d\\n", threadIdx.x, n); }
        int main(int argc, char **argv) {
            hello<<<1, 2>>>(argc);
            return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
        }
    """
    result = run_program(source, ["x"]).check()
    assert result.stdout == "thread 0 of 2\nthread 1 of 2\n"
