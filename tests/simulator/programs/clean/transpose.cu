// Transposes: naive, through a shared tile with bank conflicts, with a padded tile, with an XOR swizzle, and of bytes.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;

__global__ void transposeNaive(float *odata, const float *idata) {
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[x * height + (y + j)] = idata[(y + j) * width + x];
}

template <int PAD>
__global__ void transposeTile(float *odata, const float *idata) {
    __shared__ float tile[TILE_DIM][TILE_DIM + PAD];
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void transposeSwizzled(float *odata, const float *idata) {
    __shared__ float tile[TILE_DIM * TILE_DIM];
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        int row = threadIdx.y + j;
        tile[row * TILE_DIM + (threadIdx.x ^ row)] = idata[(y + j) * width + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        int col = threadIdx.y + j;
        odata[(y + j) * height + x] = tile[threadIdx.x * TILE_DIM + (col ^ threadIdx.x)];
    }
}

__global__ void transposeBytes(uint8_t *out, const uint8_t *in, int rows, int cols) {
    __shared__ uint8_t tile[16][16 + 1];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = in[r * cols + c];
    __syncthreads();
    r = blockIdx.y * 16 + threadIdx.x;
    c = blockIdx.x * 16 + threadIdx.y;
    if (r < rows && c < cols) out[c * rows + r] = tile[threadIdx.x][threadIdx.y];
}

int main() {
    const int nx = 96, ny = 64;
    std::vector<float> in(nx * ny), out(nx * ny);
    for (int i = 0; i < nx * ny; ++i) in[i] = i;
    float *d_in = nullptr, *d_out = nullptr;
    if (cudaMalloc(&d_in, in.size() * 4) || cudaMalloc(&d_out, in.size() * 4)) return 2;
    cudaMemcpy(d_in, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
    dim3 grid(nx / TILE_DIM, ny / TILE_DIM, 1), block(TILE_DIM, BLOCK_ROWS, 1);
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int kind = 0; kind < 4; ++kind) {
        cudaMemset(d_out, 0, in.size() * 4);
        cudaEventRecord(start, 0);
        if (kind == 0) transposeNaive<<<grid, block>>>(d_out, d_in);
        if (kind == 1) transposeTile<0><<<grid, block>>>(d_out, d_in);
        if (kind == 2) transposeTile<1><<<grid, block>>>(d_out, d_in);
        if (kind == 3) transposeSwizzled<<<grid, block>>>(d_out, d_in);
        cudaEventRecord(stop, 0);
        cudaEventSynchronize(stop);
        float ms = -1;
        if (cudaEventElapsedTime(&ms, start, stop) != cudaSuccess || ms < 0) return 3;
        if (cudaMemcpy(out.data(), d_out, out.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
        for (int y = 0; y < ny; ++y) {
            for (int x = 0; x < nx; ++x) {
                if (out[x * ny + y] != in[y * nx + x]) {
                    printf("kind %d wrong at %d %d\n", kind, y, x);
                    return 1;
                }
            }
        }
    }
    const int rows = 45, cols = 70;
    std::vector<uint8_t> bytes(rows * cols), turned(rows * cols);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 37);
    uint8_t *b_in, *b_out;
    cudaMalloc(&b_in, bytes.size());
    cudaMalloc(&b_out, bytes.size());
    cudaMemcpy(b_in, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    transposeBytes<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(b_out, b_in, rows, cols);
    if (cudaMemcpy(turned.data(), b_out, turned.size(), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < cols; ++c) {
            if (turned[c * rows + r] != bytes[r * cols + c]) return 6;
        }
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(d_in);
    cudaFree(d_out);
    printf("OK\n");
    return 0;
}
