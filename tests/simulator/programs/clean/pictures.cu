// Pictures that are enlarged, filtered, turned and warped through textures: correct programs, each of which prints OK
// as its last line.

#include <cmath>
#include <cstdlib>
#include <vector>

#include "../programs.h"
#include "../textures/objects.h"

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
        const cudaTextureFilterMode filter = k ? cudaFilterModeLinear : cudaFilterModePoint;
        textures[k] = texture_of(resource_of(array),
                                 sampling_of(cudaAddressModeClamp, filter, false, cudaReadModeNormalizedFloat));
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
    // Coordinates that are not normalised cannot wrap: they are clamped.
    const cudaTextureObject_t texture =
        texture_of(resource_of(array), sampling_of(cudaAddressModeWrap, cudaFilterModeLinear));
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
    const cudaTextureObject_t grey_texture =
        texture_of(resource_of(grey_array), sampling_of(cudaAddressModeClamp, cudaFilterModePoint));
    const cudaTextureObject_t colour_texture =
        texture_of(resource_of(colour_array),
                   sampling_of(cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat));
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
    const cudaTextureObject_t texture =
        texture_of(resource_of(array), sampling_of(cudaAddressModeWrap, cudaFilterModeLinear, true));

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

// As in an optical flow: images with a pitch are halved and moved by a field of vectors through textures that mirror;
// each step makes texture objects of its own, and destroys them when the device is done.
namespace texture_warped_images {

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
        const cudaTextureObject_t texture = texture_of(resource_of(images[step % 2], now.width, now.height, pitch),
                                                       sampling_of(cudaAddressModeMirror, cudaFilterModeLinear, true));
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
                         PROGRAM(texture_bicubic),
                         PROGRAM(texture_convolution),
                         PROGRAM(texture_edges),
                         PROGRAM(texture_rotation),
                         PROGRAM(texture_warped_images),
                     });
}
