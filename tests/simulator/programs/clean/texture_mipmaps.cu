// Levels made on the device, each from the one above it by a texture and a surface, and read by number and by gradient.
#include <cmath>
#include <vector>

#include "../check.h"

__global__ void halve(cudaSurfaceObject_t out, cudaTextureObject_t in, int size) {
    const int x = threadIdx.x, y = threadIdx.y;
    if (x >= size || y >= size) return;
    const float4 p = tex2D<float4>(in, (x + 0.5f) / size, (y + 0.5f) / size);
    surf2Dwrite(p, out, x * int(sizeof(float4)), y);
}

__global__ void read(float *out, cudaTextureObject_t levels, int size, float level) {
    const float at = (threadIdx.x + 0.5f) / blockDim.x, step = exp2f(level) / size;
    out[threadIdx.x] = tex2DLod<float4>(levels, at, at, level).y;
    out[blockDim.x + threadIdx.x] = tex2DGrad<float4>(levels, at, at, make_float2(step, 0), make_float2(0, step)).y;
}

int main() {
    const int size = 16, levels = 5;
    std::vector<float4> image(size * size);
    for (int i = 0; i < size * size; ++i) image[i] = make_float4(1, i * 37 % 101, 0, 0);
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float4>();
    cudaMipmappedArray_t mipmap;
    CHECK(cudaMallocMipmappedArray(&mipmap, &channels, make_cudaExtent(size, size, 0), levels,
                                   cudaArraySurfaceLoadStore));
    cudaArray_t level[levels];
    for (int k = 0; k < levels; ++k) CHECK(cudaGetMipmappedArrayLevel(&level[k], mipmap, k));
    CHECK(cudaMemcpy2DToArray(level[0], 0, 0, image.data(), size * sizeof(float4), size * sizeof(float4), size,
                              cudaMemcpyHostToDevice));
    std::vector<std::vector<double>> want(1, std::vector<double>(size * size));
    for (int i = 0; i < size * size; ++i) want[0][i] = image[i].y;
    for (int k = 1; k < levels; ++k) {
        const int n = size >> k;
        cudaExtent extent;
        CHECK(cudaArrayGetInfo(nullptr, &extent, nullptr, level[k]));
        if (extent.width != size_t(n) || extent.height != size_t(n)) return printf("level %d has another size\n", k), 1;
        cudaResourceDesc from = {}, to = {};
        from.resType = to.resType = cudaResourceTypeArray;
        from.res.array.array = level[k - 1];
        to.res.array.array = level[k];
        cudaTextureDesc sampling = {};
        sampling.filterMode = cudaFilterModeLinear;
        sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
        sampling.normalizedCoords = true;
        cudaTextureObject_t texture;
        cudaSurfaceObject_t surface;
        CHECK(cudaCreateTextureObject(&texture, &from, &sampling, nullptr));
        CHECK(cudaCreateSurfaceObject(&surface, &to));
        halve<<<1, dim3(8, 8)>>>(surface, texture, n);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaDestroyTextureObject(texture));
        CHECK(cudaDestroySurfaceObject(surface));
        want.emplace_back(n * n);
        for (int i = 0; i < n * n; ++i) {
            const int first = i / n * 4 * n + i % n * 2;
            const auto &above = want[k - 1];
            want[k][i] = (above[first] + above[first + 1] + above[first + 2 * n] + above[first + 2 * n + 1]) / 4;
        }
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc sampling = {};
    sampling.mipmapFilterMode = cudaFilterModeLinear;
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    sampling.normalizedCoords = true;
    sampling.maxMipmapLevelClamp = levels - 1;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    float *out;
    const int points = 32;
    CHECK(cudaMallocManaged(&out, 2 * points * sizeof(float)));
    for (int half = 0; half <= 2 * (levels - 1); ++half) {
        read<<<1, points>>>(out, texture, size, half / 2.0f);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < points; ++i) {
            const auto at = [&](int k) {
                const int n = size >> k, x = int((i + 0.5) / points * n);
                return want[k][x * n + x];
            };
            const double expected = half % 2 ? (at(half / 2) + at(half / 2 + 1)) / 2 : at(half / 2);
            for (int k = 0; k < 2; ++k)
                if (std::fabs(out[k * points + i] - expected) > 0.6)
                    return printf("level %g, point %d: %g, not %g\n", half / 2.0, i, out[k * points + i], expected), 1;
        }
    }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeMipmappedArray(mipmap));
    printf("OK\n");
    return 0;
}
