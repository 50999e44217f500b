// Layers, cubemaps and layers of cubemaps: each texel is read back where the programming guide says that it lies.
#include <vector>

#include "../check.h"

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
