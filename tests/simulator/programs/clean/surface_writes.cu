// Surfaces: a picture written texel by texel, mirrored in place, read back by a texture; boundaries that clamp and that
// give zero; cubemaps by face.
#include <vector>

#include "../check.h"

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
