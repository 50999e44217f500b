// Many blocks store the same value to one place: `found = true`.
#include <cuda_runtime.h>

#include "../check.h"

__global__ void search(const int *in, bool *found) {
    if (in[blockIdx.x * blockDim.x + threadIdx.x] == 0) *found = true;
}

int main() {
    int *in;
    bool *found, is = false;
    CHECK(cudaMalloc(&in, 4 * 256 * 8));
    CHECK(cudaMalloc(&found, 1));
    CHECK(cudaMemset(in, 0, 4 * 256 * 8));
    search<<<8, 256>>>(in, found);
    CHECK(cudaMemcpy(&is, found, 1, cudaMemcpyDeviceToHost));
    std::printf(is ? "OK\n" : "not found\n");
    return 0;
}
