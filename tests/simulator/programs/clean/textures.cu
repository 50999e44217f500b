// Textures and surfaces: correct programs, each of which prints OK as its last line.

#include <cmath>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

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
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface, cube_surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    cudaTextureDesc sampling = {};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    resource.res.array.array = cubes;
    CHECK(cudaCreateSurfaceObject(&cube_surface, &resource));

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

// A picture enlarged: nearest, linear, and cubic from four linear reads, whose weights are those of B-splines.
namespace texture_bicubic {

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

}  // namespace texture_bicubic

// A separable filter: rows through a texture, the result copied on the device into the array, columns through it again.
namespace texture_convolution {

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

}  // namespace texture_convolution

// Edges in a picture of bytes, by nine reads and by four gathers; a box filter over rows of uchar4; a bilateral filter.
namespace texture_edges {

constexpr int kWidth = 48, kHeight = 32;

__device__ int edge(int ul, int um, int ur, int ml, int mr, int ll, int lm, int lr) {
    const int across = ur + 2 * mr + lr - ul - 2 * ml - ll, down = ul + 2 * um + ur - ll - 2 * lm - lr;
    return abs(across) + abs(down);
}

__global__ void edges(int *out, cudaTextureObject_t image) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = i % kWidth, y = i / kWidth;
    const auto at = [&](int dx, int dy) { return tex2D<unsigned char>(image, x + dx, y + dy); };
    out[i] = edge(at(-1, -1), at(0, -1), at(1, -1), at(-1, 0), at(1, 0), at(-1, 1), at(0, 1), at(1, 1));
}

__global__ void gathered(int *out, cudaTextureObject_t image) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = i % kWidth, y = i / kWidth;
    // w z over x y: the texels around a corner, counter-clockwise from the lower left.
    const uchar4 ul = tex2Dgather<uchar4>(image, x, y), ur = tex2Dgather<uchar4>(image, x + 1, y);
    const uchar4 ll = tex2Dgather<uchar4>(image, x, y + 1), lr = tex2Dgather<uchar4>(image, x + 1, y + 1);
    out[i] = edge(ul.w, ul.z, ur.z, ul.x, ur.y, ll.x, ll.y, lr.y);
}

__global__ void box(float4 *out, cudaTextureObject_t image, int radius) {
    const int y = threadIdx.x;
    for (int x = 0; x < kWidth; ++x) {
        float4 sum = make_float4(0, 0, 0, 0);
        for (int k = -radius; k <= radius; ++k) {
            const float4 p = tex2D<float4>(image, x + k + 0.5f, y + 0.5f);
            sum.x += p.x, sum.y += p.y, sum.z += p.z, sum.w += p.w;
        }
        out[y * kWidth + x] = sum;
    }
}

__global__ void bilateral(float *out, cudaTextureObject_t image) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = i % kWidth, y = i / kWidth, centre = tex2D<float4>(image, x, y).x;
    float sum = 0, weights = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            const float other = tex2D<float4>(image, x + dx, y + dy).x, d = other - centre;
            const float weight = expf(-(dx * dx + dy * dy) / 8.0f - d * d * 10);
            sum += weight * other, weights += weight;
        }
    out[i] = sum / weights;
}

static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureReadMode read) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    sampling.readMode = read;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    return texture;
}

int main() {
    std::vector<unsigned char> grey(kWidth * kHeight);
    std::vector<uchar4> colour(kWidth * kHeight);
    for (int i = 0; i < kWidth * kHeight; ++i) {
        grey[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
        colour[i] = make_uchar4(grey[i], i % 256, i / 8 % 256, 255);
    }
    cudaChannelFormatDesc one = cudaCreateChannelDesc<unsigned char>(), four = cudaCreateChannelDesc<uchar4>();
    cudaArray_t grey_array, colour_array;
    CHECK(cudaMallocArray(&grey_array, &one, kWidth, kHeight, cudaArrayTextureGather));
    CHECK(cudaMallocArray(&colour_array, &four, kWidth, kHeight));
    CHECK(cudaMemcpy2DToArray(grey_array, 0, 0, grey.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DToArrayAsync(colour_array, 0, 0, colour.data(), 4 * kWidth, 4 * kWidth, kHeight,
                                   cudaMemcpyHostToDevice, nullptr));
    const cudaTextureObject_t grey_texture = texture_of(grey_array, cudaReadModeElementType);
    const cudaTextureObject_t colour_texture = texture_of(colour_array, cudaReadModeNormalizedFloat);
    int *out;
    float4 *boxes;
    float *smooth;
    CHECK(cudaMalloc(&out, 2 * kWidth * kHeight * sizeof(int)));
    CHECK(cudaMalloc(&boxes, kWidth * kHeight * sizeof(float4)));
    CHECK(cudaMalloc(&smooth, kWidth * kHeight * sizeof(float)));
    edges<<<kHeight, kWidth>>>(out, grey_texture);
    gathered<<<kHeight, kWidth>>>(out + kWidth * kHeight, grey_texture);
    box<<<1, kHeight>>>(boxes, colour_texture, 3);
    bilateral<<<kHeight, kWidth>>>(smooth, colour_texture);
    std::vector<int> found(2 * kWidth * kHeight);
    std::vector<float4> boxed(kWidth * kHeight);
    std::vector<float> smoothed(kWidth * kHeight);
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(boxed.data(), boxes, boxed.size() * sizeof(float4), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(smoothed.data(), smooth, smoothed.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const auto at = [&](int x, int y) {
        x = x < 0 ? 0 : x >= kWidth ? kWidth - 1 : x;
        y = y < 0 ? 0 : y >= kHeight ? kHeight - 1 : y;
        return y * kWidth + x;
    };
    for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
            const auto g = [&](int dx, int dy) { return int(grey[at(x + dx, y + dy)]); };
            const int across = g(1, -1) + 2 * g(1, 0) + g(1, 1) - g(-1, -1) - 2 * g(-1, 0) - g(-1, 1);
            const int down = g(-1, -1) + 2 * g(0, -1) + g(1, -1) - g(-1, 1) - 2 * g(0, 1) - g(1, 1);
            const int want = std::abs(across) + std::abs(down), i = at(x, y);
            if (found[i] != want || found[i + kWidth * kHeight] != want)
                return printf("edge %d: %d, %d, not %d\n", i, found[i], found[i + kWidth * kHeight], want), 1;
            double sum = 0, total = 0, weights = 0;
            for (int k = -3; k <= 3; ++k) sum += colour[at(x + k, y)].y / 255.0;
            if (std::fabs(boxed[i].y - sum) > 1e-4) return printf("box %d: %g, not %g\n", i, boxed[i].y, sum), 1;
            for (int dy = -2; dy <= 2; ++dy)
                for (int dx = -2; dx <= 2; ++dx) {
                    const double d = (g(dx, dy) - g(0, 0)) / 255.0;
                    const double weight = std::exp(-(dx * dx + dy * dy) / 8.0 - d * d * 10);
                    total += weight * g(dx, dy) / 255.0, weights += weight;
                }
            if (std::fabs(smoothed[i] - total / weights) > 1e-4) return printf("bilateral %d\n", i), 1;
        }
    CHECK(cudaDestroyTextureObject(grey_texture));
    CHECK(cudaDestroyTextureObject(colour_texture));
    CHECK(cudaFreeArray(grey_array));
    CHECK(cudaFreeArray(colour_array));
    printf("OK\n");
    return 0;
}

}  // namespace texture_edges

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
static Image make(const std::vector<T> &texels, cudaExtent extent, unsigned flags, bool normalized, bool linear) {
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
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = image.array;
    cudaTextureDesc sampling = {};
    for (auto &mode : sampling.addressMode) mode = normalized ? cudaAddressModeWrap : cudaAddressModeClamp;
    sampling.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    sampling.normalizedCoords = normalized;
    CHECK(cudaCreateTextureObject(&image.texture, &resource, &sampling, nullptr));
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

    Image image = make(texels, make_cudaExtent(width, width, layers), cudaArrayLayered, true, true);
    for (int layer = 0; layer < layers; ++layer)
        negate_layer<<<dim3(2, 2), dim3(8, 8)>>>(out, image.texture, width, layer);
    CHECK(cudaMemcpy(got.data(), out, layers * width * width * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < layers * width * width; ++i)
        if (got[i] != i / (width * width) - texels[i]) return printf("layered texel %d is %g\n", i, got[i]), 1;
    release(image);

    std::vector<float2> pairs(width * layers);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = make_float2(-1, float(i));
    image = make(pairs, make_cudaExtent(width, 0, layers), cudaArrayLayered, false, false);
    read_1d_layers<<<layers, width>>>(out, image.texture, width);
    CHECK(cudaMemcpy(got.data(), out, layers * width * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < layers * width; ++i)
        if (got[i] != pairs[i].y) return printf("1D layer: texel %d is %g\n", i, got[i]), 1;
    release(image);

    for (int cubes = 1; cubes <= 2; ++cubes) {
        const unsigned flags = cudaArrayCubemap | (cubes > 1 ? cudaArrayLayered : 0);
        image = make(texels, make_cudaExtent(width, width, 6 * cubes), flags, true, true);
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
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc sampling = {};
    sampling.normalizedCoords = true;
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeWrap;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
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
    cudaTextureObject_t linear[2];
    for (int k = 0; k < 2; ++k) {
        cudaResourceDesc row = {};
        row.resType = cudaResourceTypeLinear;
        row.res.linear.devPtr = k ? (void *)device_starts : (void *)device_values;
        row.res.linear.desc = k ? cudaCreateChannelDesc<int>() : cudaCreateChannelDesc<short>();
        row.res.linear.sizeInBytes = k ? starts.size() * sizeof(int) : values.size() * sizeof(short);
        cudaTextureDesc plain = {};
        CHECK(cudaCreateTextureObject(&linear[k], &row, &plain, nullptr));
    }
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

// An image turned about its centre through a texture: normalised coordinates that wrap, a linear filter, a CUDA array.
namespace texture_rotation {

__global__ void rotate(float *out, cudaTextureObject_t image, int width, int height, float angle) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float u = x / float(width) - 0.5f, v = y / float(height) - 0.5f;
    const float s = sinf(angle), c = cosf(angle);
    out[y * width + x] = tex2D<float>(image, u * c - v * s + 0.5f, v * c + u * s + 0.5f);
}

static float pixel(const std::vector<float> &image, int width, int height, int x, int y) {
    return image[((y % height + height) % height) * width + (x % width + width) % width];
}

int main() {
    const int width = 60, height = 44;
    std::vector<float> image(width * height), got(width * height);
    for (int i = 0; i < width * height; ++i) image[i] = (i * 7919 % 256) / 255.0f;

    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &channels, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeWrap;
    sampling.filterMode = cudaFilterModeLinear;
    sampling.readMode = cudaReadModeElementType;
    sampling.normalizedCoords = true;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));

    float *out;
    CHECK(cudaMalloc(&out, width * height * sizeof(float)));
    const float angle = 0.5f;
    const dim3 block(8, 8), grid((width + 7) / 8, (height + 7) / 8);
    for (int pass = 0; pass < 2; ++pass) rotate<<<grid, block>>>(out, texture, width, height, angle);
    CHECK(cudaMemcpy(got.data(), out, width * height * sizeof(float), cudaMemcpyDeviceToHost));

    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const double u = x / double(width) - 0.5, v = y / double(height) - 0.5;
            const double s = std::sin(angle), c = std::cos(angle);
            const double tx = (u * c - v * s + 0.5) * width - 0.5, ty = (v * c + u * s + 0.5) * height - 0.5;
            const int i = int(std::floor(tx)), j = int(std::floor(ty));
            const double a = tx - i, b = ty - j;
            const double want =
                (1 - b) * ((1 - a) * pixel(image, width, height, i, j) + a * pixel(image, width, height, i + 1, j)) +
                b * ((1 - a) * pixel(image, width, height, i, j + 1) + a * pixel(image, width, height, i + 1, j + 1));
            if (std::fabs(got[y * width + x] - want) > 0.01) {
                printf("(%d, %d): %g, not %g\n", x, y, got[y * width + x], want);
                return 1;
            }
        }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(out));
    printf("OK\n");
    return 0;
}

}  // namespace texture_rotation

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

}  // namespace texture_volume

// As in an optical flow: images with a pitch are halved and moved by a field of vectors through textures that mirror;
// each step makes texture objects of its own, and destroys them when the device is done.
namespace texture_warped_images {

static cudaTextureObject_t texture_of(float *memory, int width, int height, size_t pitch) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc sampling = {};
    sampling.normalizedCoords = true;
    sampling.filterMode = cudaFilterModeLinear;
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeMirror;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    return texture;
}

__global__ void halve(float *out, int width, int height, size_t stride, cudaTextureObject_t in) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float dx = 1.0f / width, dy = 1.0f / height, u = (x + 0.5f) * dx, v = (y + 0.5f) * dy;
    out[x + y * stride] = 0.25f * (tex2D<float>(in, u - dx * 0.25f, v) + tex2D<float>(in, u + dx * 0.25f, v) +
                                   tex2D<float>(in, u, v - dy * 0.25f) + tex2D<float>(in, u, v + dy * 0.25f));
}

__global__ void warp(float *out, int width, int height, size_t stride, const float2 *by, cudaTextureObject_t in) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float2 d = by[y * width + x];
    out[x + y * stride] = tex2D<float>(in, (x + d.x + 0.5f) / width, (y + d.y + 0.5f) / height);
}

struct Picture {
    int width, height;
    std::vector<double> pixels;
    // Linear, and mirrored at the edges.
    double at(double x, double y) const {
        const int i = int(std::floor(x)), j = int(std::floor(y));
        const double a = x - i, b = y - j;
        const auto p = [&](int k, int l) {
            const auto mirror = [](int m, int n) {
                m = (m % (2 * n) + 2 * n) % (2 * n);
                return m < n ? m : 2 * n - 1 - m;
            };
            return pixels[mirror(l, height) * width + mirror(k, width)];
        };
        return (1 - b) * ((1 - a) * p(i, j) + a * p(i + 1, j)) + b * ((1 - a) * p(i, j + 1) + a * p(i + 1, j + 1));
    }
};

int main() {
    Picture now{64, 48, {}};
    for (int i = 0; i < now.width * now.height; ++i) now.pixels.push_back((i * 2654435761u >> 24) / 255.0);
    std::vector<float> host(now.pixels.begin(), now.pixels.end());
    float *images[2];
    float2 *field;
    size_t pitch;
    for (float *&image : images) CHECK(cudaMallocPitch(&image, &pitch, now.width * sizeof(float), now.height));
    CHECK(cudaMallocManaged(&field, now.width * now.height * sizeof(float2)));
    CHECK(cudaMemcpy2D(images[0], pitch, host.data(), now.width * sizeof(float), now.width * sizeof(float), now.height,
                       cudaMemcpyHostToDevice));
    const dim3 block(16, 4);
    for (int step = 0; step < 4; ++step) {
        cudaTextureObject_t texture = texture_of(images[step % 2], now.width, now.height, pitch);
        Picture next{now.width, now.height, {}};
        if (step % 2) {
            next.width /= 2, next.height /= 2;
            const dim3 grid((next.width + 15) / 16, (next.height + 3) / 4);
            halve<<<grid, block>>>(images[1 - step % 2], next.width, next.height, pitch / 4, texture);
        } else {
            for (int i = 0; i < now.width * now.height; ++i)
                field[i] = make_float2(i * 7 % 83 / 4.0f - 10, i % 29 - 14.5f);
            const dim3 grid((now.width + 15) / 16, (now.height + 3) / 4);
            warp<<<grid, block>>>(images[1 - step % 2], now.width, now.height, pitch / 4, field, texture);
        }
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaDestroyTextureObject(texture));
        host.resize(next.width * next.height);
        CHECK(cudaMemcpy2D(host.data(), next.width * 4, images[1 - step % 2], pitch, next.width * 4, next.height,
                           cudaMemcpyDeviceToHost));
        for (int i = 0; i < next.width * next.height; ++i) {
            const int x = i % next.width, y = i / next.width;
            double want;
            if (step % 2) {
                const double u = 2 * x + 0.5, v = 2 * y + 0.5;
                want = (now.at(u - 0.5, v) + now.at(u + 0.5, v) + now.at(u, v - 0.5) + now.at(u, v + 0.5)) / 4;
            } else {
                want = now.at(x + field[i].x, y + field[i].y);
            }
            if (std::fabs(host[i] - want) > 0.01)
                return printf("step %d, (%d, %d): %g, not %g\n", step, x, y, host[i], want), 1;
            next.pixels.push_back(host[i]);
        }
        now = next;
    }
    for (float *image : images) CHECK(cudaFree(image));
    CHECK(cudaFree(field));
    printf("OK\n");
    return 0;
}

}  // namespace texture_warped_images

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(surface_writes),
                         PROGRAM(texture_bicubic),
                         PROGRAM(texture_convolution),
                         PROGRAM(texture_edges),
                         PROGRAM(texture_layers_and_cubes),
                         PROGRAM(texture_mipmaps),
                         PROGRAM(texture_pitched_and_linear),
                         PROGRAM(texture_rotation),
                         PROGRAM(texture_volume),
                         PROGRAM(texture_warped_images),
                     });
}
