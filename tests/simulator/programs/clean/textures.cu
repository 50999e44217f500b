// Textures and surfaces of every shape: correct programs, each of which prints OK as its last line.

#include <cmath>
#include <cstdlib>
#include <vector>

#include "../programs.h"
#include "../textures/objects.h"

// Surfaces: a picture written texel by texel, mirrored in place, read back by a texture; boundaries that clamp and that
// give zero; cubemaps by face.
namespace surface_writes {

constexpr int kWidth = 37, kHeight = 20;

__global__ void fill(cudaSurfaceObject_t surface) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    // Beyond the right edge nothing is written.
    surf2Dwrite(make_short2(x, y), surface, x * int(sizeof(short2)), y, cudaBoundaryModeZero);
}

__global__ void mirror(cudaSurfaceObject_t surface) {
    const int y = blockIdx.x, x = threadIdx.x;
    if (x >= kWidth / 2) return;
    const int other = kWidth - 1 - x;
    const short2 a = surf2Dread<short2>(surface, x * 4, y), b = surf2Dread<short2>(surface, other * 4, y);
    surf2Dwrite(b, surface, x * 4, y);
    surf2Dwrite(a, surface, other * 4, y);
}

__global__ void beyond(int2 *out, cudaSurfaceObject_t surface, cudaTextureObject_t texture) {
    const int x = int(threadIdx.x) - 10, y = int(blockIdx.x) - 10;
    const short2 clamped = surf2Dread<short2>(surface, x * 4, y, cudaBoundaryModeClamp);
    const short2 zero = surf2Dread<short2>(surface, x * 4, y, cudaBoundaryModeZero);
    const short2 texel = tex2D<short2>(texture, x, y);
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        make_int2(clamped.x * 1000 + clamped.y + (texel.x != clamped.x || texel.y != clamped.y) * 1000000,
                  zero.x * 1000 + zero.y);
}

__global__ void fill_cube(cudaSurfaceObject_t cubes) {
    for (int face = 0; face < 6; ++face)
        surfCubemapLayeredwrite(float(face + 6 * blockIdx.x), cubes, threadIdx.x * 4, threadIdx.y,
                                face + 6 * blockIdx.x);
}

int main() {
    cudaChannelFormatDesc pair = cudaCreateChannelDesc<short2>(), number = cudaCreateChannelDesc<float>();
    cudaArray_t array, cubes;
    CHECK(cudaMallocArray(&array, &pair, kWidth, kHeight, cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&cubes, &number, make_cudaExtent(8, 8, 12),
                            cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayLayered));
    const cudaSurfaceObject_t surface = surface_of(array), cube_surface = surface_of(cubes);
    const cudaTextureObject_t texture =
        texture_of(resource_of(array), sampling_of(cudaAddressModeClamp, cudaFilterModePoint));

    fill<<<dim3(2, kHeight), 32>>>(surface);
    mirror<<<kHeight, 32>>>(surface);
    const int columns = kWidth + 20, rows = kHeight + 20;
    int2 *out;
    CHECK(cudaMallocManaged(&out, columns * rows * sizeof(int2)));
    beyond<<<rows, columns>>>(out, surface, texture);
    fill_cube<<<2, dim3(8, 8)>>>(cube_surface);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < columns * rows; ++i) {
        const int x = i % columns - 10, y = i / columns - 10;
        const bool inside = x >= 0 && x < kWidth && y >= 0 && y < kHeight;
        const int cx = x < 0 ? 0 : x >= kWidth ? kWidth - 1 : x, cy = y < 0 ? 0 : y >= kHeight ? kHeight - 1 : y;
        const int clamped = (kWidth - 1 - cx) * 1000 + cy;
        if (out[i].x != clamped || out[i].y != (inside ? clamped : 0))
            return printf("(%d, %d): %d and %d\n", x, y, out[i].x, out[i].y), 1;
    }
    std::vector<short2> texels(kWidth * kHeight);
    CHECK(cudaMemcpy2DFromArray(texels.data(), kWidth * 4, array, 0, 0, kWidth * 4, kHeight, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kWidth * kHeight; ++i)
        if (texels[i].x != kWidth - 1 - i % kWidth || texels[i].y != i / kWidth) return printf("texel %d\n", i), 1;
    std::vector<float> faces(8 * 8 * 12);
    cudaMemcpy3DParms copy = {};
    copy.srcArray = cubes;
    copy.dstPtr = make_cudaPitchedPtr(faces.data(), 32, 8, 8);
    copy.extent = make_cudaExtent(8, 8, 12);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (int i = 0; i < 8 * 8 * 12; ++i)
        if (faces[i] != i / 64) return printf("face texel %d: %g\n", i, faces[i]), 1;
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroySurfaceObject(cube_surface));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFreeArray(cubes));
    printf("OK\n");
    return 0;
}

}  // namespace surface_writes

// Layers, cubemaps and layers of cubemaps: each texel is read back where the programming guide says that it lies.
namespace texture_layers_and_cubes {

__global__ void negate_layer(float *out, cudaTextureObject_t image, int width, int layer) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const float u = (x + 0.5f) / width, v = (y + 0.5f) / width;
    out[(layer * width + y) * width + x] = -tex2DLayered<float>(image, u, v, layer) + layer;
}

__global__ void read_1d_layers(float *out, cudaTextureObject_t image, int width) {
    out[blockIdx.x * width + threadIdx.x] = tex1DLayered<float2>(image, threadIdx.x + 0.5f, blockIdx.x).y;
}

__device__ float3 direction(int face, float s, float t) {  // s, t from -1 to 1
    switch (face) {
        case 0:
            return make_float3(1, -t, -s);
        case 1:
            return make_float3(-1, -t, s);
        case 2:
            return make_float3(s, 1, t);
        case 3:
            return make_float3(s, -1, -t);
        case 4:
            return make_float3(s, -t, 1);
        default:
            return make_float3(-s, -t, -1);
    }
}

template <bool kLayered>
__global__ void read_cube(float *out, cudaTextureObject_t cube, int width, int layer) {
    const int x = threadIdx.x, y = threadIdx.y, face = blockIdx.x;
    const float3 d = direction(face, (2 * x + 1) / float(width) - 1, (2 * y + 1) / float(width) - 1);
    const int at = ((layer * 6 + face) * width + y) * width + x;
    if (kLayered) {
        out[at] = texCubemapLayered<float>(cube, 3 * d.x, 3 * d.y, 3 * d.z, layer);
    } else {
        out[at] = texCubemap<float>(cube, d.x, d.y, d.z);
    }
}

struct Image {
    cudaArray_t array;
    cudaTextureObject_t texture;
};

template <class T>
static Image make(const std::vector<T> &texels, cudaExtent extent, unsigned flags, bool smooth) {
    Image image;
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<T>();
    CHECK(cudaMalloc3DArray(&image.array, &channels, extent, flags));
    cudaMemcpy3DParms copy = {};
    const size_t rows = extent.height ? extent.height : 1;
    copy.srcPtr = make_cudaPitchedPtr((void *)texels.data(), extent.width * sizeof(T), extent.width, rows);
    copy.dstArray = image.array;
    copy.extent = make_cudaExtent(extent.width, rows, extent.depth);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    image.texture =
        texture_of(resource_of(image.array), sampling_of(smooth ? cudaAddressModeWrap : cudaAddressModeClamp,
                                                         smooth ? cudaFilterModeLinear : cudaFilterModePoint, smooth));
    return image;
}

static void release(const Image &image) {
    CHECK(cudaDestroyTextureObject(image.texture));
    CHECK(cudaFreeArray(image.array));
}

int main() {
    const int width = 16, layers = 5;
    std::vector<float> texels(width * width * 12), got(texels.size());
    for (size_t i = 0; i < texels.size(); ++i) texels[i] = float(i % 1009);
    float *out;
    CHECK(cudaMalloc(&out, texels.size() * sizeof(float)));

    Image image = make(texels, make_cudaExtent(width, width, layers), cudaArrayLayered, true);
    for (int layer = 0; layer < layers; ++layer)
        negate_layer<<<dim3(2, 2), dim3(8, 8)>>>(out, image.texture, width, layer);
    CHECK(cudaMemcpy(got.data(), out, layers * width * width * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < layers * width * width; ++i)
        if (got[i] != i / (width * width) - texels[i]) return printf("layered texel %d is %g\n", i, got[i]), 1;
    release(image);

    std::vector<float2> pairs(width * layers);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = make_float2(-1, float(i));
    image = make(pairs, make_cudaExtent(width, 0, layers), cudaArrayLayered, false);
    read_1d_layers<<<layers, width>>>(out, image.texture, width);
    CHECK(cudaMemcpy(got.data(), out, layers * width * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < layers * width; ++i)
        if (got[i] != pairs[i].y) return printf("1D layer: texel %d is %g\n", i, got[i]), 1;
    release(image);

    for (int cubes = 1; cubes <= 2; ++cubes) {
        const unsigned flags = cudaArrayCubemap | (cubes > 1 ? cudaArrayLayered : 0);
        image = make(texels, make_cudaExtent(width, width, 6 * cubes), flags, true);
        for (int layer = 0; layer < cubes; ++layer) {
            if (cubes > 1) {
                read_cube<true><<<6, dim3(width, width)>>>(out, image.texture, width, layer);
            } else {
                read_cube<false><<<6, dim3(width, width)>>>(out, image.texture, width, layer);
            }
        }
        CHECK(cudaMemcpy(got.data(), out, cubes * 6 * width * width * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < cubes * 6 * width * width; ++i) {
            // A centre that rounding moved mixes at most 1/256 of a neighbour.
            if (got[i] < texels[i] - 8 || got[i] > texels[i] + 8) return printf("cube texel %d is %g\n", i, got[i]), 1;
        }
        release(image);
    }
    CHECK(cudaFree(out));
    printf("OK\n");
    return 0;
}

}  // namespace texture_layers_and_cubes

// Levels made on the device, each from the one above it by a texture and a surface, and read by number and by gradient.
namespace texture_mipmaps {

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
        const cudaTextureObject_t texture =
            texture_of(resource_of(level[k - 1]), sampling_of(cudaAddressModeClamp, cudaFilterModeLinear, true));
        const cudaSurfaceObject_t surface = surface_of(level[k]);
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
    cudaTextureDesc sampling = sampling_of(cudaAddressModeClamp, cudaFilterModePoint, true);
    sampling.mipmapFilterMode = cudaFilterModeLinear;
    sampling.maxMipmapLevelClamp = levels - 1;
    const cudaTextureObject_t texture = texture_of(resource, sampling);
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

}  // namespace texture_mipmaps

// Textures over the program's own memory: rows with a pitch, and a long row that tex1Dfetch reads beyond its ends.
namespace texture_pitched_and_linear {

__global__ void shift_pitched(float *out, cudaTextureObject_t image, int width, int height, int by) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width) out[y * width + x] = tex2D<float>(image, (x + by) / float(width) + 0.001f, (y + 0.5f) / height);
}

__global__ void sum_rows(int *out, cudaTextureObject_t values, cudaTextureObject_t starts, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int sum = 0;
    for (int k = tex1Dfetch<int>(starts, row); k < tex1Dfetch<int>(starts, row + 1); ++k)
        sum += tex1Dfetch<short>(values, k);
    out[row] = sum + tex1Dfetch<short>(values, -1 - row) + tex1Dfetch<short>(values, 1000000 + row);
}

int main() {
    const int width = 100, height = 6, by = 13;
    std::vector<float> image(width * height), got(width * height);
    for (int i = 0; i < width * height; ++i) image[i] = float(i);
    float *pitched, *out;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, width * sizeof(float), height));
    CHECK(cudaMalloc(&out, width * height * sizeof(float)));
    CHECK(cudaMemcpy2D(pitched, pitch, image.data(), width * sizeof(float), width * sizeof(float), height,
                       cudaMemcpyHostToDevice));
    const cudaTextureObject_t texture = texture_of(resource_of(pitched, width, height, pitch),
                                                   sampling_of(cudaAddressModeWrap, cudaFilterModePoint, true));
    shift_pitched<<<dim3(2, height), 64>>>(out, texture, width, height, by);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < width * height; ++i) {
        const float want = image[i / width * width + (i % width + by) % width];
        if (got[i] != want) return printf("pixel %d: %g, not %g\n", i, got[i], want), 1;
    }

    const int rows = 50;
    std::vector<int> starts(rows + 1);
    for (int r = 0; r < rows; ++r) starts[r + 1] = starts[r] + r % 7;
    std::vector<short> values(starts[rows]);
    for (size_t i = 0; i < values.size(); ++i) values[i] = short(i * 31 - 700);
    short *device_values;
    int *device_starts, *sums;
    CHECK(cudaMalloc(&device_values, values.size() * sizeof(short)));
    CHECK(cudaMalloc(&device_starts, starts.size() * sizeof(int)));
    CHECK(cudaMalloc(&sums, rows * sizeof(int)));
    CHECK(cudaMemcpy(device_values, values.data(), values.size() * sizeof(short), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_starts, starts.data(), starts.size() * sizeof(int), cudaMemcpyHostToDevice));
    const cudaTextureObject_t linear[] = {
        texture_of(resource_of(device_values, values.size() * sizeof(short))),
        texture_of(resource_of(device_starts, starts.size() * sizeof(int))),
    };
    sum_rows<<<1, 64>>>(sums, linear[0], linear[1], rows);
    std::vector<int> summed(rows);
    CHECK(cudaMemcpy(summed.data(), sums, rows * sizeof(int), cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; ++r) {
        int want = 0;
        for (int k = starts[r]; k < starts[r + 1]; ++k) want += values[k];
        if (summed[r] != want) return printf("row %d: %d, not %d\n", r, summed[r], want), 1;
    }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroyTextureObject(linear[0]));
    CHECK(cudaDestroyTextureObject(linear[1]));
    printf("OK\n");
    return 0;
}

}  // namespace texture_pitched_and_linear

// A volume smoothed through a 3D texture into a surface of another array, and shown by a transfer function in a 1D
// texture: bytes read as numbers from 0 to 1.
namespace texture_volume {

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

    const cudaSurfaceObject_t surface = surface_of(out);
    const cudaTextureReadMode as_fractions = cudaReadModeNormalizedFloat;
    const cudaTextureObject_t in_texture =
        texture_of(resource_of(in), sampling_of(cudaAddressModeClamp, cudaFilterModePoint, false, as_fractions));
    const cudaTextureObject_t out_texture =
        texture_of(resource_of(out), sampling_of(cudaAddressModeClamp, cudaFilterModeLinear, true, as_fractions));
    const cudaTextureObject_t transfer_texture =
        texture_of(resource_of(transfer), sampling_of(cudaAddressModeClamp, cudaFilterModeLinear, true));
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

}  // namespace texture_volume

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(surface_writes),
                         PROGRAM(texture_layers_and_cubes),
                         PROGRAM(texture_mipmaps),
                         PROGRAM(texture_pitched_and_linear),
                         PROGRAM(texture_volume),
                     });
}
