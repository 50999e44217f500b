// Reads textures as a file says and writes what each read returned: see test_instructions_texture.py, which writes the
// one and reads the other. Each case is a Case, its texels and its places; the answer is four words for each place.
#include <cstring>
#include <vector>

#include "../check.h"

enum Resource { kArray, kLinear, kPitched };
enum Operation { kSample, kFetch, kGather, kLevel };

struct Case {
    int resource, operation, geometry;  // 1d, 2d, 3d, a1d, a2d, cube, acube
    int width, height, depth;           // as cudaMalloc3DArray wants them
    int kind, bits, channels;
    int levels;  // of a mipmapped array; 0: none
    int address[3], filter, level_filter, normalized_floats, srgb, normalized_coordinates, floats;
    float border[4];
    int component, places;
};

struct Place {
    float at[3];
    float level;
    int layer;
};

template <class T>
__device__ T gather(cudaTextureObject_t t, float x, float y, int component) {
    switch (component) {
        case 0:
            return tex2Dgather<T>(t, x, y, 0);
        case 1:
            return tex2Dgather<T>(t, x, y, 1);
        case 2:
            return tex2Dgather<T>(t, x, y, 2);
        default:
            return tex2Dgather<T>(t, x, y, 3);
    }
}

template <class T>
__global__ void read(T *out, cudaTextureObject_t t, const Place *places, Case c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c.places) return;
    const Place p = places[i];
    const float x = p.at[0], y = p.at[1], z = p.at[2];
    T value = {};
    if (c.operation == kFetch) {
        value = tex1Dfetch<T>(t, int(x));
    } else if (c.operation == kGather) {
        value = gather<T>(t, x, y, c.component);
    } else if (c.operation == kLevel) {
        value = tex2DLod<T>(t, x, y, p.level);
    } else if (c.geometry == 0) {
        value = tex1D<T>(t, x);
    } else if (c.geometry == 1) {
        value = tex2D<T>(t, x, y);
    } else if (c.geometry == 2) {
        value = tex3D<T>(t, x, y, z);
    } else if (c.geometry == 3) {
        value = tex1DLayered<T>(t, x, p.layer);
    } else if (c.geometry == 4) {
        value = tex2DLayered<T>(t, x, y, p.layer);
    } else if (c.geometry == 5) {
        value = texCubemap<T>(t, x, y, z);
    } else {
        value = texCubemapLayered<T>(t, x, y, z, p.layer);
    }
    out[i] = value;
}

static std::vector<char> contents(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(1);
    std::vector<char> bytes;
    char piece[65536];
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) bytes.insert(bytes.end(), piece, piece + n);
    fclose(file);
    return bytes;
}

static void copy_in(cudaArray_t array, const char *texels, size_t bytes, const cudaExtent &extent) {
    cudaMemcpy3DParms copy = {};
    const size_t rows = extent.height ? extent.height : 1, planes = extent.depth ? extent.depth : 1;
    copy.srcPtr = make_cudaPitchedPtr((void *)texels, extent.width * bytes, extent.width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(extent.width, rows, planes);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
}

int main(int, char **arguments) {
    const std::vector<char> input = contents(arguments[1]);
    FILE *answers = fopen(arguments[2], "wb");
    for (size_t at = 0; at < input.size();) {
        Case c;
        memcpy(&c, &input[at], sizeof c);
        at += sizeof c;
        const size_t bytes = size_t(c.bits / 8 * c.channels), rows = c.height ? c.height : 1;
        const int n[] = {c.bits, c.channels > 1 ? c.bits : 0, c.channels > 2 ? c.bits : 0, c.channels > 3 ? c.bits : 0};
        const cudaChannelFormatDesc channels =
            cudaCreateChannelDesc(n[0], n[1], n[2], n[3], static_cast<cudaChannelFormatKind>(c.kind));
        cudaResourceDesc resource = {};
        void *memory = nullptr;
        cudaArray_t array = nullptr;
        cudaMipmappedArray_t mipmap = nullptr;
        cudaExtent extent = make_cudaExtent(c.width, c.height, c.depth);
        if (c.resource == kLinear) {
            CHECK(cudaMalloc(&memory, c.width * bytes));
            CHECK(cudaMemcpy(memory, &input[at], c.width * bytes, cudaMemcpyHostToDevice));
            resource.resType = cudaResourceTypeLinear;
            resource.res.linear = {memory, channels, c.width * bytes};
            at += c.width * bytes;
        } else if (c.resource == kPitched) {
            size_t pitch;
            CHECK(cudaMallocPitch(&memory, &pitch, c.width * bytes, c.height));
            CHECK(cudaMemcpy2D(memory, pitch, &input[at], c.width * bytes, c.width * bytes, c.height,
                               cudaMemcpyHostToDevice));
            resource.resType = cudaResourceTypePitch2D;
            resource.res.pitch2D = {memory, channels, size_t(c.width), size_t(c.height), pitch};
            at += c.width * c.height * bytes;
        } else if (c.levels) {
            CHECK(cudaMallocMipmappedArray(&mipmap, &channels, extent, c.levels));
            for (int k = 0; k < c.levels; ++k) {
                CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, k));
                copy_in(array, &input[at], bytes, extent);
                at += extent.width * extent.height * bytes;
                extent = make_cudaExtent(extent.width / 2, extent.height / 2, 0);
            }
            resource.resType = cudaResourceTypeMipmappedArray;
            resource.res.mipmap.mipmap = mipmap;
        } else {
            unsigned flags = c.geometry >= 5 ? cudaArrayCubemap : 0;
            if (c.geometry == 3 || c.geometry == 4 || c.geometry == 6) flags |= cudaArrayLayered;
            if (c.operation == kGather) flags |= cudaArrayTextureGather;
            CHECK(cudaMalloc3DArray(&array, &channels, extent, flags));
            copy_in(array, &input[at], bytes, extent);
            at += c.width * rows * (c.depth ? c.depth : 1) * bytes;
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = array;
        }
        cudaTextureDesc sampling = {};
        for (int k = 0; k < 3; ++k) sampling.addressMode[k] = static_cast<cudaTextureAddressMode>(c.address[k]);
        sampling.filterMode = c.filter ? cudaFilterModeLinear : cudaFilterModePoint;
        sampling.mipmapFilterMode = c.level_filter ? cudaFilterModeLinear : cudaFilterModePoint;
        sampling.readMode = c.normalized_floats ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
        sampling.sRGB = c.srgb;
        sampling.normalizedCoords = c.normalized_coordinates;
        sampling.maxMipmapLevelClamp = c.levels ? c.levels - 1 : 0;
        memcpy(sampling.borderColor, c.border, sizeof c.border);
        cudaTextureObject_t texture;
        CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));

        std::vector<Place> places(c.places);
        memcpy(places.data(), &input[at], places.size() * sizeof(Place));
        at += places.size() * sizeof(Place);
        Place *device_places;
        uint4 *out;
        std::vector<uint4> got(c.places);
        CHECK(cudaMalloc(&device_places, places.size() * sizeof(Place)));
        CHECK(cudaMalloc(&out, got.size() * sizeof(uint4)));
        CHECK(cudaMemcpy(device_places, places.data(), places.size() * sizeof(Place), cudaMemcpyHostToDevice));
        const int blocks = (c.places + 127) / 128;
        if (c.floats) {
            read<<<blocks, 128>>>(reinterpret_cast<float4 *>(out), texture, device_places, c);
        } else {
            read<<<blocks, 128>>>(out, texture, device_places, c);
        }
        CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(uint4), cudaMemcpyDeviceToHost));
        fwrite(got.data(), sizeof(uint4), got.size(), answers);
        CHECK(cudaDestroyTextureObject(texture));
        if (mipmap) {
            CHECK(cudaFreeMipmappedArray(mipmap));
        } else if (array) {
            CHECK(cudaFreeArray(array));
        }
        CHECK(cudaFree(memory));
        CHECK(cudaFree(device_places));
        CHECK(cudaFree(out));
    }
    fclose(answers);
}
