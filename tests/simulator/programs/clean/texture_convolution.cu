// A separable filter: rows through a texture, the result copied on the device into the array, columns through it again.
#include <cmath>
#include <vector>

#include "../check.h"

constexpr int kWidth = 70, kHeight = 40, kRadius = 4;
__constant__ float weights[2 * kRadius + 1];

__global__ void rows(float *out, cudaTextureObject_t image) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= kWidth || y >= kHeight) return;
    float sum = 0;
#pragma unroll
    for (int k = -kRadius; k <= kRadius; ++k) sum += tex2D<float>(image, x + 0.5f + k, y + 0.5f) * weights[kRadius - k];
    out[y * kWidth + x] = sum;
}

__global__ void columns(float *out, cudaTextureObject_t image) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= kWidth || y >= kHeight) return;
    float sum = 0;
#pragma unroll
    for (int k = -kRadius; k <= kRadius; ++k) sum += tex2D<float>(image, x + 0.5f, y + 0.5f + k) * weights[kRadius - k];
    out[y * kWidth + x] = sum;
}

int main() {
    const size_t row = kWidth * sizeof(float);
    std::vector<float> image(kWidth * kHeight), got(image.size());
    for (size_t i = 0; i < image.size(); ++i) image[i] = float(i * 2654435761u >> 24);
    float w[2 * kRadius + 1];
    for (int k = 0; k <= 2 * kRadius; ++k) w[k] = 1.0f / (k + 1);
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    float *out;
    CHECK(cudaMallocArray(&array, &channels, kWidth, kHeight));
    CHECK(cudaMalloc(&out, kHeight * row));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    // Coordinates that are not normalised cannot wrap: they are clamped.
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeWrap;
    sampling.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    const dim3 block(16, 12), grid((kWidth + 15) / 16, (kHeight + 11) / 12);
    for (int pass = 0; pass < 2; ++pass) {
        CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), row, row, kHeight, cudaMemcpyHostToDevice));
        rows<<<grid, block>>>(out, texture);
        CHECK(cudaMemcpy2DToArray(array, 0, 0, out, row, row, kHeight, cudaMemcpyDeviceToDevice));
        columns<<<grid, block>>>(out, texture);
    }
    CHECK(cudaMemcpy(got.data(), out, kHeight * row, cudaMemcpyDeviceToHost));
    std::vector<double> between(image.size());
    const auto clamp = [](int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; };
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x)
            for (int k = -kRadius; k <= kRadius; ++k)
                between[y * kWidth + x] += double(image[y * kWidth + clamp(x + k, kWidth)]) * w[kRadius - k];
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
            double want = 0;
            for (int k = -kRadius; k <= kRadius; ++k)
                want += between[clamp(y + k, kHeight) * kWidth + x] * w[kRadius - k];
            if (std::fabs(got[y * kWidth + x] - want) > 1e-4 * want)
                return printf("(%d, %d): %g, not %g\n", x, y, got[y * kWidth + x], want), 1;
        }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(out));
    printf("OK\n");
    return 0;
}
