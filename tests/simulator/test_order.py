"""The report's "order": products while copies are under way, loads of fragments in a row, work of the first and last block."""

import pytest
from cudart import run_program

pytestmark = pytest.mark.simulator_only

SOURCE = r"""
#include <cstdint>
__device__ void product(float (&sum)[4], const uint32_t (&a)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%4, %5},"
                 " {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}
__device__ void load(uint32_t (&a)[4], uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from));
}
__global__ void kernel(float *x) {
    extern __shared__ float tile[];
    const uint32_t own = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
    const uint32_t other = own + blockDim.x * 16;
    uint32_t a[4];
    float sum[4] = {};
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(own), "r"(0));
    __syncwarp();
    load(a, own), load(a, own), product(sum, a);  // nothing is under way
    asm volatile("cp.async.commit_group;");       // an empty group is nothing
    product(sum, a);
    if (threadIdx.x < 32 || blockIdx.x) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(other), "l"(x));
    load(a, own), load(a, own), load(a, own), product(sum, a), product(sum, a);
    asm volatile("cp.async.wait_all;");
    product(sum, a);
    for (int i = 0; i < blockIdx.x; ++i) sum[0] += x[i];
    x[1024 + blockIdx.x * blockDim.x + threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}
int main() {
    float *x;
    cudaMalloc(&x, 1 << 16);
    cudaMemset(x, 0, 1 << 16);
    kernel<<<3, 64, 64 * 32>>>(x);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.mark.parametrize("schedule", (0, 7))
def test_order(schedule):
    report = run_program(SOURCE, report=True, env={"WARPSIM_SCHEDULE": schedule}).check().report
    (launch,) = report["launches"]
    order = launch["order"]
    # Two products each of 5 warps: the second warp of the first block asks for no copy.
    assert order["tensor_during_copies"] == 2 * 5, order
    assert launch["instructions"]["by_class"]["tensor"] == 5 * 6
    assert order["ldmatrix_in_a_row"] == 3, order
    assert 0 < order["first_block"] < order["last_block"] < launch["instructions"]["total"], order
