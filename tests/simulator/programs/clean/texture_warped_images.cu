// As in an optical flow: images with a pitch are halved and moved by a field of vectors through textures that mirror;
// each step makes texture objects of its own, and destroys them when the device is done.
#include <cmath>
#include <vector>

#include "../check.h"

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
