// setmaxnreg in a kernel without launch bounds: ptxas does not know how many registers there are at the start, and
// leaves the instruction out.
#include <cuda_runtime.h>

#include "../check.h"

__global__ void more_registers(int *out) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    out[threadIdx.x] = int(threadIdx.x);
}

int main() {
    int *out;
    CHECK(cudaMalloc(&out, 128 * sizeof(int)));
    more_registers<<<1, 128>>>(out);
    CHECK(cudaDeviceSynchronize());
    std::printf("OK\n");
    return 0;
}
