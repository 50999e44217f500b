// A matrix transposed by tiles of 32 x 32. All threads of a warp read one bank; -DMENDED pads the tile's rows.
#include <cstdio>
#include <vector>

constexpr int kTile = 32, kRows = 8;  // a tile, and the rows of it that a block handles at once
#ifdef MENDED
constexpr int kPitch = kTile + 1;
#else
constexpr int kPitch = kTile;
#endif

__global__ void transpose(int n, const float *in, float *out) {
    __shared__ float tile[kTile][kPitch];
    const int column = blockIdx.x * kTile + threadIdx.x, row = blockIdx.y * kTile + threadIdx.y;
    for (int i = 0; i < kTile; i += kRows) tile[threadIdx.y + i][threadIdx.x] = in[(row + i) * n + column];
    __syncthreads();
    const int out_column = blockIdx.y * kTile + threadIdx.x, out_row = blockIdx.x * kTile + threadIdx.y;
    for (int i = 0; i < kTile; i += kRows) {
        out[(out_row + i) * n + out_column] = tile[threadIdx.x][threadIdx.y + i];
    }
}

int main() {
    const int n = 256;
    std::vector<float> in(n * n), out(n * n);
    for (int i = 0; i < n * n; ++i) in[i] = static_cast<float>(i);
    float *a, *b;
    cudaMalloc(&a, in.size() * sizeof(float));
    cudaMalloc(&b, in.size() * sizeof(float));
    cudaMemcpy(a, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
    transpose<<<dim3(n / kTile, n / kTile), dim3(kTile, kRows)>>>(n, a, b);
    cudaMemcpy(out.data(), b, in.size() * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) wrong += out[j * n + i] != in[i * n + j];
    std::printf("%s: %d elements are wrong\n", cudaGetErrorString(cudaGetLastError()), wrong);
    return wrong != 0;
}
