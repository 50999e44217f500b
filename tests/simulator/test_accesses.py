"""WARPSIM_ACCESSES: the lane addresses of a warp's memory instructions, with their own counts."""

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

SOURCE = r"""
#include <cstdint>
__global__ void kernel(float *x, int stride) {
    extern __shared__ float tile[];
    const int i = threadIdx.x;
    float *own = x + 256 * (1 + blockIdx.x);  // of the block; all of them add to x[0]
    for (int k = 0; k < 4; ++k) tile[i * stride + k] = own[i];
    __syncthreads();
    uint32_t a, b, row = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + i % 16 * 256;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(row));
    if (i % 2) own[2 * i] = __uint_as_float(a ^ b);
    __syncthreads();
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + i * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(own + 4 * i));
    asm volatile("cp.async.wait_all;");
    atomicAdd(x, tile[4 * i]);
}
int main() {
    float *x;
    cudaMalloc(&x, 1 << 16);
    cudaMemset(x, 0, 1 << 16);
    kernel<<<2, 64, 64 * 33 * 4 + 16>>>(x, 32);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


def accesses(**env):
    report = run_program(SOURCE, report=True, env={name: str(value) for name, value in env.items()}).check().report
    return report["launches"][0].get("accesses"), report["launches"][0]


def of(found, space, kind):
    return [one for one in found if one["space"] == space and one["kind"] == kind]


@pytest.mark.long
def test_off_unless_asked_for():
    assert accesses()[0] is None


def test_first_executions_of_one_warp():
    found, _ = accesses(WARPSIM_ACCESSES=1)
    assert all(one["block"] == [0, 0, 0] and one["warp"] == 0 for one in found)
    assert all(one["line"] > 0 and one["ptx_line"] > 0 for one in found)
    for one in found:
        assert [k for k in range(32) if one["addresses"][k] is not None] == [
            k for k in range(32) if one["lanes"] >> k & 1
        ]
    stores = of(found, "shared", "store")
    assert {one["wavefronts"] for one in stores} == {32} and {one["ideal"] for one in stores} == {1}
    assert stores[0]["addresses"][:3] == [0, 128, 256] and stores[0]["bytes"] == 4
    load = of(found, "global", "load")[0]
    assert load["addresses"][1] - load["addresses"][0] == 4 and (load["sectors"], load["ideal"]) == (4, 4)


def test_matrices_give_row_addresses():
    (matrix,) = of(accesses(WARPSIM_ACCESSES=1)[0], "shared", "ldmatrix")
    assert matrix["matrices"] == 2 and matrix["lanes"] == 0xFFFF and matrix["bytes"] == 16
    assert matrix["addresses"][:16] == [256 * i for i in range(16)] and matrix["addresses"][16] is None
    assert (matrix["wavefronts"], matrix["ideal"]) == (16, 2)


def test_missing_lanes_are_null():
    store = of(accesses(WARPSIM_ACCESSES=1)[0], "global", "store")[0]
    assert store["lanes"] == 0xAAAAAAAA and store["addresses"][0] is None and store["addresses"][1] is not None


def test_both_sides_of_an_asynchronous_copy():
    found, _ = accesses(WARPSIM_ACCESSES=1)
    (to,), (source,) = of(found, "shared", "cp_async"), of(found, "global", "cp_async")
    assert to["bytes"] == source["bytes"] == 16 and to["line"] == source["line"]
    assert (source["sectors"], source["ideal"]) == (16, 16)


def test_another_warp_of_another_block():
    found, _ = accesses(WARPSIM_ACCESSES=1, WARPSIM_ACCESSES_BLOCK="1,0,0", WARPSIM_ACCESSES_WARP=1)
    assert all(one["block"] == [1, 0, 0] and one["warp"] == 1 for one in found)
    assert of(found, "shared", "store")[0]["addresses"][0] == 32 * 128


def test_counts_add_up_to_the_launchs():
    """All executions of all four warps, one run for each."""
    sums = {"shared": 0, "global": 0}
    for block in (0, 1):
        for warp in (0, 1):
            found, launch = accesses(
                WARPSIM_ACCESSES=1000, WARPSIM_ACCESSES_BLOCK=f"{block},0,0", WARPSIM_ACCESSES_WARP=warp
            )
            for one in found:
                sums[one["space"]] += one["wavefronts"] if one["space"] == "shared" else one["sectors"]
    assert sums["shared"] == sum(count["wavefronts"] for count in launch["shared"].values())
    assert sums["global"] == sum(count["sectors"] for count in launch["global"].values())


@pytest.mark.parametrize("value", ["0,0", "a,0,0", "0,0,0,0", ",,"])
def test_bad_block_is_refused(value):
    result = run_program(SOURCE, env={"WARPSIM_ACCESSES_BLOCK": value})
    assert result.returncode != 0 and "WARPSIM_ACCESSES_BLOCK" in result.stderr
