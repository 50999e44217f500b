"""The system's part of shared memory: where kernels that ask for it find it, what it leaves alone, what is checked."""

import numpy as np
import pytest
from cudart import run_program, run_ptx

pytestmark = pytest.mark.simulator_only

RESERVED = 1024
NAMES = ["offset_begin", "offset_end", "offset_cap", "offset_0", "offset_1"]

PLACES = """
.version 8.3
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry places(.param .u64 out_param) {
    .shared .align 4 .b8 fixed[20];
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [out_param];
    BODY
    ret;
}
"""


def places(*values, **keywords):
    """What a thread of a block with 20 bytes of static and 64 of dynamic shared memory finds in `values`."""
    body = "\n".join(f"mov.u32 %r0, {v}; st.global.u32 [%rd0+{4 * i}], %r0;" for i, v in enumerate(values))
    out = np.zeros(len(values), np.uint32)
    result = run_ptx(PLACES.replace("BODY", body), "places", 1, 1, [out], shared=64, report=True, **keywords)
    return result.check().outputs[0].tolist(), result.report["launches"][0]


def test_a_kernel_that_asks_gets_a_kilobyte_in_front_of_its_own():
    names = [f"%reserved_smem_{name}" for name in NAMES]
    (begin, end, cap, first, second, fixed, dynamic, total), launch = places(
        *names, "fixed", "dynamic", "%total_smem_size"
    )
    assert (begin, end, cap) == (0, RESERVED, RESERVED)
    assert begin <= first <= second <= end - 288, "cooperative_groups counts on 288 bytes from offset_1 on"
    assert second % 8 == 0
    assert (fixed, dynamic) == (RESERVED, RESERVED + 32), "the kernel's own shared memory starts behind it"
    assert total == launch["shared_bytes"] == 96, "no figure counts the system's bytes"


def test_other_kernels_have_none():
    (fixed, dynamic), launch = places("fixed", "dynamic")
    assert (fixed, dynamic, launch["shared_bytes"]) == (0, 32, 96)


def test_the_devices_limit_is_the_same():
    text = PLACES.replace("BODY", "mov.u32 %r0, %reserved_smem_offset_1; mov.u32 %r1, dynamic;")
    most = 227 * 1024 - 32
    assert run_ptx(text, "places", 1, 32, [np.zeros(1, np.uint32)], shared=most).ok
    assert not run_ptx(text, "places", 1, 32, [np.zeros(1, np.uint32)], shared=most + 16).ok


def test_bounds_are_those_of_the_kernels_own_bytes():
    body = "mov.u32 %r0, %reserved_smem_offset_1; st.shared.u32 [dynamic+64], %r0;"
    result = run_ptx(PLACES.replace("BODY", body), "places", 1, 1, [np.zeros(1, np.uint32)], shared=64, report=True)
    (hazard,) = result.hazards
    assert hazard["kind"] == "out_of_bounds"
    assert "0 bytes past the end of the block's 96 bytes of shared memory" in hazard["message"]


TILES = """
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void pass(int *out) {
    __shared__ int box[64];
    const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    box[threadIdx.x] = threadIdx.x;
    SYNC
    out[threadIdx.x] = box[63 - threadIdx.x];
}
int main() {
    int *out;
    cudaMallocManaged(&out, 64 * sizeof(int));
    pass<<<1, 64>>>(out);
    const cudaError_t error = cudaDeviceSynchronize();
    printf("%s %d\\n", cudaGetErrorName(error), error == cudaSuccess ? out[5] : 0);
}
"""


@pytest.mark.long
def test_a_tile_of_several_warps_orders_the_kernels_own_memory():
    assert run_program(TILES.replace("SYNC", "tile.sync();")).check().stdout == "cudaSuccess 58\n"


@pytest.mark.long
def test_races_in_the_kernels_own_memory_are_still_found():
    result = run_program(TILES.replace("SYNC", ""), report=True)
    assert [h["kind"] for h in result.hazards] == ["shared_race"]
    assert result.hazards[0]["line"] == TILES.splitlines().index("    out[threadIdx.x] = box[63 - threadIdx.x];") + 1
