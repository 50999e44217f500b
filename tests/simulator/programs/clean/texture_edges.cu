// Edges in a picture of bytes, by nine reads and by four gathers; a box filter over rows of uchar4; a bilateral filter.
#include <cmath>
#include <cstdlib>
#include <vector>

#include "../check.h"

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
