// The tile of sums is read before its warp has met.
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>

using namespace nvcuda;

__global__ void twice(float *out, const half *in) {
    __shared__ __align__(32) float tile[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, in, 16);
    wmma::load_matrix_sync(b, in, 16);
    wmma::fill_fragment(c, 0.0f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);  //~ the write
#ifdef MENDED
    __syncwarp();
#endif
    for (int i = threadIdx.x; i < 256; i += 32)
        out[i] = 2 * tile[i];  //! shared_race: read | wrote or writes | Lanes of a warp
}

int main() {
    half *in;
    float *out;
    cudaMalloc(&in, 256 * sizeof(half));
    cudaMalloc(&out, 256 * sizeof(float));
    cudaMemset(in, 0, 256 * sizeof(half));
    twice<<<1, 32>>>(out, in);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
