// A picture enlarged: nearest, linear, and cubic from four linear reads, whose weights are those of B-splines.
#include <cmath>
#include <vector>

#include "../check.h"

constexpr int kWidth = 20, kHeight = 16, kZoom = 3;

__device__ float w0(float a) {
    return (1.0f / 6) * (a * (a * (-a + 3) - 3) + 1);
}
__device__ float w1(float a) {
    return (1.0f / 6) * (a * a * (3 * a - 6) + 4);
}
__device__ float w2(float a) {
    return (1.0f / 6) * (a * (a * (-3 * a + 3) + 3) + 1);
}
__device__ float w3(float a) {
    return (1.0f / 6) * a * a * a;
}

__device__ float cubic(cudaTextureObject_t image, float x, float y) {
    x -= 0.5f, y -= 0.5f;
    const float px = floorf(x), py = floorf(y), fx = x - px, fy = y - py;
    const float g0x = w0(fx) + w1(fx), g1x = w2(fx) + w3(fx), h0x = w1(fx) / g0x - 0.5f, h1x = w3(fx) / g1x + 1.5f;
    const float g0y = w0(fy) + w1(fy), g1y = w2(fy) + w3(fy), h0y = w1(fy) / g0y - 0.5f, h1y = w3(fy) / g1y + 1.5f;
    return g0y * (g0x * tex2D<float>(image, px + h0x, py + h0y) + g1x * tex2D<float>(image, px + h1x, py + h0y)) +
           g1y * (g0x * tex2D<float>(image, px + h0x, py + h1y) + g1x * tex2D<float>(image, px + h1x, py + h1y));
}

__global__ void enlarge(float *out, cudaTextureObject_t near, cudaTextureObject_t linear) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= kWidth * kZoom) return;
    const float u = (x + 0.5f) / kZoom, v = (y + 0.5f) / kZoom;
    float *to = out + 3 * (y * kWidth * kZoom + x);
    to[0] = tex2D<float>(near, u, v);
    to[1] = tex2D<float>(linear, u, v);
    to[2] = cubic(linear, u, v);
}

int main() {
    std::vector<unsigned char> image(kWidth * kHeight);
    for (int i = 0; i < kWidth * kHeight; ++i) image[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &bytes, kWidth, kHeight));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    cudaTextureObject_t textures[2];
    for (int k = 0; k < 2; ++k) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        cudaTextureDesc sampling = {};
        sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
        sampling.filterMode = k ? cudaFilterModeLinear : cudaFilterModePoint;
        sampling.readMode = cudaReadModeNormalizedFloat;
        CHECK(cudaCreateTextureObject(&textures[k], &resource, &sampling, nullptr));
    }
    const int pixels = kWidth * kZoom * kHeight * kZoom;
    float *out;
    CHECK(cudaMallocManaged(&out, 3 * pixels * sizeof(float)));
    enlarge<<<dim3(2, kHeight * kZoom), 32>>>(out, textures[0], textures[1]);
    CHECK(cudaDeviceSynchronize());
    const auto at = [&](int x, int y) {
        x = x < 0 ? 0 : x >= kWidth ? kWidth - 1 : x;
        y = y < 0 ? 0 : y >= kHeight ? kHeight - 1 : y;
        return image[y * kWidth + x] / 255.0;
    };
    for (int i = 0; i < pixels; ++i) {
        const double u = (i % (kWidth * kZoom) + 0.5) / kZoom, v = (i / (kWidth * kZoom) + 0.5) / kZoom;
        const int x = int(std::floor(u - 0.5)), y = int(std::floor(v - 0.5));
        const double a = u - 0.5 - x, b = v - 0.5 - y;
        const double linear =
            (1 - b) * ((1 - a) * at(x, y) + a * at(x + 1, y)) + b * ((1 - a) * at(x, y + 1) + a * at(x + 1, y + 1));
        const auto spline = [](double t, int k) {
            const double w[] = {(1 - t) * (1 - t) * (1 - t), 3 * t * t * t - 6 * t * t + 4,
                                -3 * t * t * t + 3 * t * t + 3 * t + 1, t * t * t};
            return w[k] / 6;
        };
        double cubic = 0;
        for (int k = 0; k < 16; ++k) cubic += spline(a, k % 4) * spline(b, k / 4) * at(x + k % 4 - 1, y + k / 4 - 1);
        const double want[] = {at(int(u), int(v)), linear, cubic};
        for (int k = 0; k < 3; ++k)
            if (std::fabs(out[3 * i + k] - want[k]) > 0.01)
                return printf("pixel %d, filter %d: %g, not %g\n", i, k, out[3 * i + k], want[k]), 1;
    }
    for (const auto texture : textures) CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(out));
    printf("OK\n");
    return 0;
}
