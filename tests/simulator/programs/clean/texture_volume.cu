// A volume smoothed through a 3D texture into a surface of another array, and shown by a transfer function in a 1D
// texture: bytes read as numbers from 0 to 1.
#include <cmath>
#include <vector>

#include "../check.h"

constexpr int kSize = 12;

__global__ void smooth(cudaTextureObject_t in, cudaSurfaceObject_t out) {
    const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    float sum = 0;
    for (int k = -1; k <= 1; ++k)
        for (int j = -1; j <= 1; ++j)
            for (int i = -1; i <= 1; ++i) sum += tex3D<float>(in, x + i + 0.5f, y + j + 0.5f, z + k + 0.5f);
    surf3Dwrite(static_cast<unsigned char>(sum / 27 * 255 + 0.5f), out, x, y, z);
}

__global__ void project(float4 *out, cudaTextureObject_t volume, cudaTextureObject_t colours) {
    const int x = threadIdx.x, y = threadIdx.y;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int z = 0; z < 2 * kSize; ++z) {
        const float density = tex3D<float>(volume, (x + 0.5f) / kSize, (y + 0.5f) / kSize, (z + 0.5f) / (2 * kSize));
        const float4 c = tex1D<float4>(colours, density);
        sum.x += c.x, sum.y += c.y, sum.z += c.z, sum.w += c.w;
    }
    out[y * kSize + x] = sum;
}

static cudaTextureObject_t texture_of(cudaArray_t array, bool linear, bool normalized, bool bytes) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    for (auto &mode : sampling.addressMode) mode = cudaAddressModeClamp;
    sampling.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    sampling.readMode = bytes ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    sampling.normalizedCoords = normalized;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    return texture;
}

int main() {
    const cudaExtent extent = make_cudaExtent(kSize, kSize, kSize);
    std::vector<unsigned char> volume(kSize * kSize * kSize), smoothed(volume.size());
    for (size_t i = 0; i < volume.size(); ++i) volume[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>(), colour = cudaCreateChannelDesc<float4>();
    cudaArray_t in, out, transfer;
    CHECK(cudaMalloc3DArray(&in, &bytes, extent));
    CHECK(cudaMalloc3DArray(&out, &bytes, extent, cudaArraySurfaceLoadStore));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(volume.data(), kSize, kSize, kSize);
    copy.dstArray = in;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    float4 colours[3] = {{0, 0, 0, 0}, {1, 0, 0.5f, 0.25f}, {0, 1, 0.5f, 0.75f}};
    CHECK(cudaMallocArray(&transfer, &colour, 3, 1));
    CHECK(cudaMemcpy2DToArray(transfer, 0, 0, colours, 0, sizeof colours, 1, cudaMemcpyHostToDevice));

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = out;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    const cudaTextureObject_t in_texture = texture_of(in, false, false, true);
    const cudaTextureObject_t out_texture = texture_of(out, true, true, true);
    const cudaTextureObject_t transfer_texture = texture_of(transfer, true, true, false);
    smooth<<<kSize, dim3(kSize, kSize)>>>(in_texture, surface);
    float4 *pixels;
    CHECK(cudaMalloc(&pixels, kSize * kSize * sizeof(float4)));
    project<<<1, dim3(kSize, kSize)>>>(pixels, out_texture, transfer_texture);

    copy = {};
    copy.srcArray = out;
    copy.dstPtr = make_cudaPitchedPtr(smoothed.data(), kSize, kSize, kSize);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    const auto clamp = [](int i) { return i < 0 ? 0 : i >= kSize ? kSize - 1 : i; };
    for (int z = 0; z < kSize; ++z)
        for (int y = 0; y < kSize; ++y)
            for (int x = 0; x < kSize; ++x) {
                double sum = 0;
                for (int k = -1; k <= 1; ++k)
                    for (int j = -1; j <= 1; ++j)
                        for (int i = -1; i <= 1; ++i)
                            sum += volume[(clamp(z + k) * kSize + clamp(y + j)) * kSize + clamp(x + i)];
                const double got = smoothed[(z * kSize + y) * kSize + x];
                if (std::fabs(got - sum / 27) > 0.51) return printf("voxel %d %d %d: %g\n", x, y, z, got), 1;
            }
    std::vector<float4> shown(kSize * kSize);
    CHECK(cudaMemcpy(shown.data(), pixels, shown.size() * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kSize * kSize; ++i) {
        double red = 0;
        for (int z = 0; z < 2 * kSize; ++z) {
            const double at = (z + 0.5) / 2 - 0.5, a = at - std::floor(at);
            const int k = int(std::floor(at));
            const double density =
                ((1 - a) * smoothed[clamp(k) * kSize * kSize + i] + a * smoothed[clamp(k + 1) * kSize * kSize + i]) /
                255;
            const double u = 3 * density - 0.5;
            red += u < 0 ? 0 : u < 1 ? u : u < 2 ? 2 - u : 0;
        }
        if (std::fabs(shown[i].x - red) > 0.2) return printf("pixel %d: %g, not %g\n", i, shown[i].x, red), 1;
    }
    for (const auto texture : {in_texture, out_texture, transfer_texture}) CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    for (const auto array : {in, out, transfer}) CHECK(cudaFreeArray(array));
    CHECK(cudaFree(pixels));
    printf("OK\n");
    return 0;
}
