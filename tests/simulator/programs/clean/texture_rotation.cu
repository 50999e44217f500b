// An image turned about its centre through a texture: normalised coordinates that wrap, a linear filter, a CUDA array.
#include <cmath>
#include <vector>

#include "../check.h"

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
