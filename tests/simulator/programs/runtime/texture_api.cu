// CUDA arrays, texture and surface objects as the runtime API has them, one case per run: texture_api CASE.
#include <cstring>
#include <vector>

#include "../textures/objects.h"

#define TRUE(condition)                                              \
    do {                                                             \
        if (!(condition)) {                                          \
            printf("line %d: not true: %s\n", __LINE__, #condition); \
            exit(1);                                                 \
        }                                                            \
    } while (0)
#define FAILS(call, code)                                                              \
    do {                                                                               \
        const cudaError_t got_ = (call);                                               \
        if (got_ != code) {                                                            \
            printf("line %d: %s gives %s\n", __LINE__, #call, cudaGetErrorName(got_)); \
            exit(1);                                                                   \
        }                                                                              \
        cudaGetLastError();                                                            \
    } while (0)

static const cudaChannelFormatDesc kFloat = cudaCreateChannelDesc<float>();

static cudaArray_t make_array(size_t width, size_t height, unsigned flags = 0,
                              const cudaChannelFormatDesc &channels = kFloat) {
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &channels, width, height, flags));
    return array;
}

__global__ void copy_texels(float *out, cudaTextureObject_t texture) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = tex2D<float>(texture, threadIdx.x, blockIdx.x);
}

__global__ void questions(unsigned *out, cudaTextureObject_t texture, cudaSurfaceObject_t surface) {
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(texture));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(texture));
    asm volatile("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(texture));
    asm volatile("txq.array_size.b32 %0, [%1];" : "=r"(out[3]) : "l"(texture));
    asm volatile("txq.num_mipmap_levels.b32 %0, [%1];" : "=r"(out[4]) : "l"(texture));
    asm volatile("txq.normalized_coords.b32 %0, [%1];" : "=r"(out[5]) : "l"(texture));
    asm volatile("txq.level.width.b32 %0, [%1], 2;" : "=r"(out[6]) : "l"(texture));
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[7]) : "l"(surface));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[8]) : "l"(surface));
    asm volatile("suq.array_size.b32 %0, [%1];" : "=r"(out[9]) : "l"(surface));
}

// Texels that are there say so, and integer coordinates name texels of a level.
__global__ void residence(float *out, cudaTextureObject_t texture) {
    bool there = false;
    out[0] = tex2D<float>(texture, 0.5f, 0.5f, &there);
    out[1] = there;
    float y, z, w;
    asm volatile("tex.level.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {3, 2}], 1;"
                 : "=f"(out[2]), "=f"(y), "=f"(z), "=f"(w)
                 : "l"(texture));
}

static void shapes() {
    struct {
        cudaExtent extent;
        unsigned flags;
        cudaError_t code;
    } const shapes[] = {
        {{8, 0, 0}, 0, cudaSuccess},
        {{8, 4, 0}, cudaArraySurfaceLoadStore | cudaArrayTextureGather, cudaSuccess},
        {{8, 4, 2}, 0, cudaSuccess},
        {{8, 0, 3}, cudaArrayLayered, cudaSuccess},
        {{8, 4, 3}, cudaArrayLayered, cudaSuccess},
        {{8, 8, 6}, cudaArrayCubemap, cudaSuccess},
        {{8, 8, 12}, cudaArrayCubemap | cudaArrayLayered, cudaSuccess},
        {{0, 4, 0}, 0, cudaErrorInvalidValue},
        {{8, 0, 2}, 0, cudaErrorInvalidValue},
        {{8, 4, 0}, cudaArrayLayered, cudaErrorInvalidValue},
        {{8, 4, 6}, cudaArrayCubemap, cudaErrorInvalidValue},
        {{8, 8, 5}, cudaArrayCubemap, cudaErrorInvalidValue},
        {{8, 8, 10}, cudaArrayCubemap | cudaArrayLayered, cudaErrorInvalidValue},
        {{1 << 20, 0, 0}, 0, cudaErrorInvalidValue},
        {{8, 4, 0}, 1 << 20, cudaErrorInvalidValue},
    };
    for (const auto &shape : shapes) {
        cudaArray_t array;
        FAILS(cudaMalloc3DArray(&array, &kFloat, shape.extent, shape.flags), shape.code);
        if (shape.code != cudaSuccess) continue;
        cudaChannelFormatDesc channels;
        cudaExtent extent;
        unsigned flags;
        CHECK(cudaArrayGetInfo(&channels, &extent, &flags, array));
        TRUE(!memcmp(&extent, &shape.extent, sizeof extent) && flags == shape.flags);
        TRUE(!memcmp(&channels, &kFloat, sizeof channels));
        CHECK(cudaGetChannelDesc(&channels, array));
        TRUE(channels.x == 32 && channels.f == cudaChannelFormatKindFloat);
        CHECK(cudaFreeArray(array));
    }
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int width = 0;
    CHECK(cudaDeviceGetAttribute(&width, cudaDevAttrMaxTexture2DWidth, 0));
    TRUE(width == device.maxTexture2D[0] && width >= 65536);
    size_t texels = 0;
    CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&texels, &kFloat, 0));
    TRUE(texels >= 1 << 27);
}

static void channel_formats() {
    struct {
        int x, y, z, w;
        cudaChannelFormatKind kind;
        bool good;
    } const formats[] = {
        {8, 0, 0, 0, cudaChannelFormatKindUnsigned, true},   {16, 16, 0, 0, cudaChannelFormatKindFloat, true},
        {32, 32, 32, 32, cudaChannelFormatKindSigned, true}, {8, 8, 8, 0, cudaChannelFormatKindUnsigned, false},
        {8, 16, 0, 0, cudaChannelFormatKindUnsigned, false}, {64, 0, 0, 0, cudaChannelFormatKindUnsigned, false},
        {8, 0, 0, 0, cudaChannelFormatKindFloat, false},     {0, 0, 0, 0, cudaChannelFormatKindSigned, false},
        {32, 0, 32, 0, cudaChannelFormatKindFloat, false},   {32, 0, 0, 0, cudaChannelFormatKindNone, false},
    };
    for (const auto &f : formats) {
        const cudaChannelFormatDesc channels = cudaCreateChannelDesc(f.x, f.y, f.z, f.w, f.kind);
        cudaArray_t array = nullptr;
        const cudaError_t code = cudaMallocArray(&array, &channels, 4, 4);
        if ((code == cudaSuccess) != f.good) {
            printf("(%d, %d, %d, %d): %s\n", f.x, f.y, f.z, f.w, cudaGetErrorName(code));
            exit(1);
        }
        cudaGetLastError();
        CHECK(cudaFreeArray(array));
    }
}

static void copies() {
    const int width = 6, height = 5;
    cudaArray_t array = make_array(width, height), other = make_array(width, height);
    std::vector<float> values(width * height), got(width * height);
    for (int i = 0; i < width * height; ++i) values[i] = i;
    const size_t row = width * sizeof(float);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), row, row, height, cudaMemcpyHostToDevice));
    // A box of 2 x 3 from (4, 1) to (1, 2).
    CHECK(cudaMemcpy2DToArray(other, 0, 0, values.data(), row, row, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DArrayToArray(other, 4, 2 * 1, array, 16, 1, 8, 3));
    CHECK(cudaMemcpy2DFromArray(got.data(), row, other, 0, 0, row, height, cudaMemcpyDeviceToHost));
    for (int i = 0; i < width * height; ++i) {
        const int x = i % width, y = i / width;
        const bool inside = x >= 1 && x < 3 && y >= 2;
        TRUE(got[i] == (inside ? values[(y - 1) * width + x + 3] : values[i]));
    }
    // The deprecated copies run on from row to row.
    float run[8] = {};
#pragma nv_diag_suppress 1444
    CHECK(cudaMemcpyFromArray(run, array, 16, 1, sizeof run, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 8; ++k) TRUE(run[k] == 10 + k);
    CHECK(cudaMemcpyToArray(array, 8, 0, run, sizeof run, cudaMemcpyHostToDevice));
    FAILS(cudaMemcpyToArray(array, 0, 4, run, sizeof run, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK(cudaMemcpy2DFromArray(got.data(), row, array, 0, 0, row, height, cudaMemcpyDeviceToHost));
    TRUE(got[2] == 10 && got[9] == 17 && got[10] == 10);

    FAILS(cudaMemcpy2DToArray(array, 4, 0, values.data(), row, row, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy2DToArray(array, 0, 1, values.data(), row, row, height, cudaMemcpyHostToDevice),
          cudaErrorInvalidValue);
    FAILS(cudaMemcpy2DToArray(array, ~size_t{0}, 0, values.data(), row, 4, 1, cudaMemcpyHostToDevice),
          cudaErrorInvalidValue);
    FAILS(cudaMemcpy2DToArray(array, 0, 0, values.data(), row - 4, row, height, cudaMemcpyHostToDevice),
          cudaErrorInvalidPitchValue);
    FAILS(cudaMemcpy2DToArray(array, 0, 0, values.data(), row, row, height, cudaMemcpyDeviceToHost),
          cudaErrorInvalidValue);
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(values.data(), row, width, height);
    box.dstArray = array;
    box.extent = make_cudaExtent(width, height, 1);
    box.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&box));
    box.dstPos.x = 1;
    FAILS(cudaMemcpy3D(&box), cudaErrorInvalidValue);
    box.dstPos = {};
    box.dstPtr = box.srcPtr;
    FAILS(cudaMemcpy3D(&box), cudaErrorInvalidValue);

    CHECK(cudaFreeArray(array));
    FAILS(cudaMemcpy2DFromArray(got.data(), row, array, 0, 0, row, height, cudaMemcpyDeviceToHost),
          cudaErrorInvalidResourceHandle);
    FAILS(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
    CHECK(cudaFreeArray(nullptr));
    CHECK(cudaFreeArray(other));
}

// A copy from pinned memory happens when something waits for it; one from pageable memory has read it before.
static void late_copies() {
    cudaArray_t array = make_array(32, 1);
    float *pinned, *out, pageable[32], got[32];
    CHECK(cudaMallocHost(&pinned, sizeof got));
    CHECK(cudaMalloc(&out, sizeof got));
    const cudaTextureObject_t texture = texture_of(resource_of(array));
    for (int pass = 0; pass < 2; ++pass) {
        for (int k = 0; k < 32; ++k) pinned[k] = pageable[k] = 1;
        CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, pass ? pageable : pinned, sizeof got, sizeof got, 1,
                                       cudaMemcpyHostToDevice, nullptr));
        for (int k = 0; k < 32; ++k) pinned[k] = pageable[k] = 2;
        copy_texels<<<1, 32>>>(out, texture);
        CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
        for (int k = 0; k < 32; ++k) TRUE(got[k] == (pass ? 1 : 2));
    }
}

static void texture_descriptions() {
    cudaArray_t array = make_array(8, 8);
    const cudaResourceDesc resource = resource_of(array);
    cudaTextureDesc sampling = {};
    sampling.addressMode[1] = cudaAddressModeMirror;
    sampling.normalizedCoords = true;
    const cudaTextureObject_t texture = texture_of(resource, sampling), second = texture_of(resource);
    TRUE(texture != second);
    cudaResourceDesc same;
    cudaTextureDesc same_sampling;
    CHECK(cudaGetTextureObjectResourceDesc(&same, texture));
    CHECK(cudaGetTextureObjectTextureDesc(&same_sampling, texture));
    TRUE(same.res.array.array == array && !memcmp(&sampling, &same_sampling, sizeof sampling));
    CHECK(cudaDestroyTextureObject(texture));
    FAILS(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
    FAILS(cudaGetTextureObjectTextureDesc(&same_sampling, texture), cudaErrorInvalidValue);

    cudaTextureObject_t none;
    const auto create = [&](const cudaResourceDesc &r, const cudaTextureDesc &t) {
        return cudaCreateTextureObject(&none, &r, &t, nullptr);
    };
    FAILS(cudaCreateTextureObject(&none, &resource, nullptr, nullptr), cudaErrorInvalidValue);
    FAILS(create(resource_of(nullptr), {}), cudaErrorInvalidValue);
    sampling.addressMode[0] = cudaTextureAddressMode(9);
    FAILS(create(resource, sampling), cudaErrorInvalidValue);
    // Integers are filtered only where they are read as floats.
    const cudaChannelFormatDesc byte = cudaCreateChannelDesc<unsigned char>(), word = cudaCreateChannelDesc<int>();
    const cudaResourceDesc bytes = resource_of(make_array(8, 8, 0, byte)),
                           words = resource_of(make_array(8, 8, 0, word));
    cudaTextureDesc linear = {};
    linear.filterMode = cudaFilterModeLinear;
    CHECK(create(resource, linear));
    FAILS(create(bytes, linear), cudaErrorInvalidFilterSetting);
    linear.readMode = cudaReadModeNormalizedFloat;
    CHECK(create(bytes, linear));
    linear.filterMode = cudaFilterModePoint;
    FAILS(create(words, linear), cudaErrorInvalidNormSetting);
    FAILS(create(resource, linear), cudaErrorInvalidNormSetting);
}

static void memory_of_textures() {
    float *memory;
    CHECK(cudaMalloc(&memory, 1 << 16));
    TRUE(reinterpret_cast<size_t>(memory) % 512 == 0);
    cudaTextureObject_t none;
    const cudaTextureDesc sampling = {};
    cudaResourceDesc row = {};
    row.resType = cudaResourceTypeLinear;
    row.res.linear = {memory, kFloat, 4096};
    CHECK(cudaCreateTextureObject(&none, &row, &sampling, nullptr));
    row.res.linear.devPtr = memory + 1;
    FAILS(cudaCreateTextureObject(&none, &row, &sampling, nullptr), cudaErrorInvalidValue);
    row.res.linear.devPtr = nullptr;
    FAILS(cudaCreateTextureObject(&none, &row, &sampling, nullptr), cudaErrorInvalidValue);
    row.res.linear = {memory, kFloat, size_t{1} << 40};
    FAILS(cudaCreateTextureObject(&none, &row, &sampling, nullptr), cudaErrorInvalidValue);
    row.res.linear = {memory, cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned), 4096};
    FAILS(cudaCreateTextureObject(&none, &row, &sampling, nullptr), cudaErrorInvalidChannelDescriptor);
    cudaResourceDesc rows = {};
    rows.resType = cudaResourceTypePitch2D;
    rows.res.pitch2D = {memory, kFloat, 16, 4, 64};
    CHECK(cudaCreateTextureObject(&none, &rows, &sampling, nullptr));
    rows.res.pitch2D.pitchInBytes = 68;
    FAILS(cudaCreateTextureObject(&none, &rows, &sampling, nullptr), cudaErrorInvalidValue);
    rows.res.pitch2D.pitchInBytes = 32;
    FAILS(cudaCreateTextureObject(&none, &rows, &sampling, nullptr), cudaErrorInvalidValue);
}

static void surface_descriptions() {
    cudaArray_t plain = make_array(8, 8), array = make_array(8, 8, cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t surface;
    cudaResourceDesc resource = resource_of(plain);
    FAILS(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidValue);
    resource = resource_of(array);
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    cudaResourceDesc same;
    CHECK(cudaGetSurfaceObjectResourceDesc(&same, surface));
    TRUE(same.res.array.array == array);
    CHECK(cudaDestroySurfaceObject(surface));
    FAILS(cudaDestroySurfaceObject(surface), cudaErrorInvalidValue);
    FAILS(cudaGetSurfaceObjectResourceDesc(&same, surface), cudaErrorInvalidValue);
}

static void mipmapped_arrays() {
    cudaMipmappedArray_t mipmap;
    CHECK(cudaMallocMipmappedArray(&mipmap, &kFloat, make_cudaExtent(16, 8, 0), 99));
    cudaArray_t level, again;
    for (unsigned k = 0; k < 5; ++k) {
        CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, k));
        CHECK(cudaGetMipmappedArrayLevel(&again, mipmap, k));
        cudaExtent extent;
        CHECK(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
        TRUE(level == again && extent.width == 16u >> k && extent.height == (k < 3 ? 8u >> k : 1) && !extent.depth);
    }
    FAILS(cudaGetMipmappedArrayLevel(&again, mipmap, 5), cudaErrorInvalidValue);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    FAILS(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidValue);
    sampling.normalizedCoords = true;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    CHECK(cudaFreeMipmappedArray(mipmap));
    FAILS(cudaFreeMipmappedArray(mipmap), cudaErrorInvalidResourceHandle);
    FAILS(cudaArrayGetInfo(nullptr, nullptr, nullptr, level), cudaErrorInvalidResourceHandle);
}

static void queries() {
    cudaMipmappedArray_t mipmap;
    CHECK(cudaMallocMipmappedArray(&mipmap, &kFloat, make_cudaExtent(16, 12, 0), 3));
    cudaArray_t level;
    CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
    std::vector<float> values(8 * 6);
    for (int i = 0; i < 48; ++i) values[i] = i;
    CHECK(cudaMemcpy2DToArray(level, 0, 0, values.data(), 32, 32, 6, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc sampling = {};
    sampling.normalizedCoords = true;
    const cudaTextureObject_t texture = texture_of(resource, sampling);
    cudaArray_t layers;
    CHECK(cudaMalloc3DArray(&layers, &kFloat, make_cudaExtent(5, 7, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
    resource = resource_of(layers);
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    unsigned *out;
    CHECK(cudaMallocManaged(&out, 10 * sizeof *out));
    questions<<<1, 1>>>(out, texture, surface);
    CHECK(cudaDeviceSynchronize());
    const unsigned want[] = {16, 12, 1, 1, 3, 1, 4, 5, 7, 3};
    for (int k = 0; k < 10; ++k) {
        if (out[k] != want[k]) printf("question %d: %u, not %u\n", k, out[k], want[k]), exit(1);
    }
    float *read;
    CHECK(cudaMallocManaged(&read, 3 * sizeof *read));
    residence<<<1, 1>>>(read, texture);
    CHECK(cudaDeviceSynchronize());
    TRUE(read[1] == 1 && read[2] == 2 * 8 + 3);
}

static void reset() {
    cudaArray_t array = make_array(8, 8);
    const cudaTextureObject_t texture = texture_of(resource_of(array));
    CHECK(cudaDeviceReset());
    FAILS(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
    FAILS(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
    size_t free, total, left;
    CHECK(cudaMemGetInfo(&free, &total));
    array = make_array(1024, 1024);
    CHECK(cudaMemGetInfo(&left, &total));
    TRUE(free - left >= 4 << 20);
    CHECK(cudaFreeArray(array));
    CHECK(cudaMemGetInfo(&left, &total));
    TRUE(free == left);
}

// cudaDestroyTextureObject does not wait, cudaFreeArray does.
static void destroyed_under_a_kernel() {
    cudaArray_t array = make_array(32, 4);
    float *out;
    CHECK(cudaMalloc(&out, 128 * sizeof(float)));
    const cudaTextureObject_t first = texture_of(resource_of(array)), second = texture_of(resource_of(array));
    copy_texels<<<4, 32>>>(out, first);
    CHECK(cudaFreeArray(array));
    CHECK(cudaDestroyTextureObject(first));
    CHECK(cudaDeviceSynchronize());
    copy_texels<<<4, 32>>>(out, second);
    CHECK(cudaDestroyTextureObject(second));
    FAILS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
}

// Reads 32 x 4 texels by 4 warps, twice.
static void counted() {
    cudaArray_t array = make_array(32, 4);
    float *out;
    CHECK(cudaMalloc(&out, 128 * sizeof(float)));
    const cudaTextureObject_t texture = texture_of(resource_of(array));
    for (int pass = 0; pass < 2; ++pass) copy_texels<<<4, 32>>>(out, texture);
    CHECK(cudaDeviceSynchronize());
}

int main(int count, char **arguments) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(shapes),
        CASE(channel_formats),
        CASE(copies),
        CASE(late_copies),
        CASE(texture_descriptions),
        CASE(memory_of_textures),
        CASE(surface_descriptions),
        CASE(mipmapped_arrays),
        CASE(queries),
        CASE(reset),
        CASE(destroyed_under_a_kernel),
        CASE(counted),
    };
    for (const auto &c : cases) {
        if (count == 2 && !strcmp(arguments[1], c.name)) {
            c.run();
            printf("passed\n");
            return 0;
        }
    }
    printf("no such case\n");
    return 2;
}
