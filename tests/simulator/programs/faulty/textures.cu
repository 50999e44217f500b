// Textures and surfaces that are used wrongly: a program with the fault, and without it by -DMENDED.
#include <cuda_runtime.h>

#include <cstdio>

#include "../programs.h"
#include "../textures/objects.h"

// Threads beyond the right edge of a surface write, too.
namespace surface_past_the_edge {

__global__ void fill(cudaSurfaceObject_t surface, int width) {
    const int x = threadIdx.x, y = blockIdx.x;
    if (x >= width) return;
    surf2Dwrite(1.0f, surface, 4 * x, y);  //! out_of_bounds: writes 4 bytes at x = 80 bytes, y = 0 | 20 x 8 elements
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 20, 8, cudaArraySurfaceLoadStore);
    const cudaSurfaceObject_t surface = surface_of(array);
#ifdef MENDED
    fill<<<8, 32>>>(surface, 20);
#else
    fill<<<8, 32>>>(surface, 32);
#endif
    return ended();
}

}  // namespace surface_past_the_edge

// The grid has one row more than the surface: reads of it fault.
namespace surface_row_missing {

__global__ void sum(float *out, cudaSurfaceObject_t surface) {
    const int x = threadIdx.x, y = blockIdx.x;
    if (x >= 20) return;
    out[y * 20 + x] = surf2Dread<float>(surface, 4 * x, y);  //! out_of_bounds: reads 4 bytes | y = 8 | 19 more lanes
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 20, 8, cudaArraySurfaceLoadStore);
    const cudaSurfaceObject_t surface = surface_of(array);
    float *out;
    cudaMalloc(&out, 9 * 20 * sizeof(float));
#ifdef MENDED
    sum<<<8, 32>>>(out, surface);
#else
    sum<<<9, 32>>>(out, surface);
#endif
    return ended();
}

}  // namespace surface_row_missing

// The first coordinate of a surface counts bytes, not elements.
namespace surface_x_in_elements {

#ifdef MENDED
constexpr int kStep = sizeof(float);
#else
constexpr int kStep = 1;
#endif

__global__ void fill(cudaSurfaceObject_t surface) {
    const int x = threadIdx.x;
    if (x >= 20) return;
    surf2Dwrite(1.0f, surface, x * kStep, blockIdx.x);  //! misaligned: x = 1 bytes | multiple of 4
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 20, 8, cudaArraySurfaceLoadStore);
    const cudaSurfaceObject_t surface = surface_of(array);
    fill<<<8, 32>>>(surface);
    return ended();
}

}  // namespace surface_x_in_elements

// The kernel uses a texture object that was destroyed.
namespace texture_destroyed {

__global__ void copy(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);  //! invalid_argument: texture object | that was destroyed
}

int main() {
    float *values;
    cudaMalloc(&values, 1024 * sizeof(float));
    cudaMemset(values, 0, 1024 * sizeof(float));
    const cudaTextureObject_t texture = texture_of(resource_of(values, 1024 * sizeof(float)));
    float *out;
    cudaMalloc(&out, 2048 * sizeof(float));
#ifndef MENDED
    cudaDestroyTextureObject(texture);
#endif
    copy<<<1, 32>>>(out, texture);
    return ended();
}

}  // namespace texture_destroyed

// A surface object is no texture object.
namespace texture_handle_of_a_surface {

__global__ void copy(float *out, cudaTextureObject_t t) {
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 3);  //! invalid_argument: is a surface object, not a texture object
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 20, 8, cudaArraySurfaceLoadStore);
    const cudaSurfaceObject_t surface = surface_of(array);
    const cudaTextureObject_t texture = texture_of(resource_of(array));
    float *out;
    cudaMalloc(&out, 20 * sizeof(float));
#ifdef MENDED
    copy<<<1, 32>>>(out, texture);
#else
    copy<<<1, 32>>>(out, surface);
#endif
    return ended();
}

}  // namespace texture_handle_of_a_surface

// The texture object says that there are more values than were allocated.
namespace texture_larger_than_memory {

#ifdef MENDED
constexpr int kSize = 1024;
#else
constexpr int kSize = 2048;
#endif

__global__ void copy(float *out, cudaTextureObject_t t) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float>(t, i);  //! out_of_bounds: texel of 4 bytes | larger than its memory | past the end of
}

int main() {
    float *values;
    cudaMalloc(&values, 1024 * sizeof(float));
    cudaMemset(values, 0, 1024 * sizeof(float));
    const cudaTextureObject_t texture = texture_of(resource_of(values, kSize * sizeof(float)));
    float *out;
    cudaMalloc(&out, 2048 * sizeof(float));
    copy<<<kSize / 256, 256>>>(out, texture);
    return ended();
}

}  // namespace texture_larger_than_memory

// A layer that the array does not have.
namespace texture_layer_missing {

__global__ void copy(float *out, cudaTextureObject_t t) {
    out[blockIdx.x * 32 + threadIdx.x] =
        tex1DLayered<float>(t, threadIdx.x, blockIdx.x);  //! out_of_bounds: reads layer 3 of a texture that has 3
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMalloc3DArray(&array, &channels, make_cudaExtent(32, 0, 3), cudaArrayLayered);
    const cudaTextureObject_t texture = texture_of(resource_of(array));
    float *out;
    cudaMalloc(&out, 4 * 32 * sizeof(float));
#ifdef MENDED
    copy<<<3, 32>>>(out, texture);
#else
    copy<<<4, 32>>>(out, texture);
#endif
    return ended();
}

}  // namespace texture_layer_missing

// The texture object is alive, and its memory is not.
namespace texture_of_freed_memory {

__global__ void copy(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);  //! invalid_address: memory that was freed
}

int main() {
    float *values;
    cudaMalloc(&values, 1024 * sizeof(float));
    cudaMemset(values, 0, 1024 * sizeof(float));
    const cudaTextureObject_t texture = texture_of(resource_of(values, 1024 * sizeof(float)));
    float *out;
    cudaMalloc(&out, 2048 * sizeof(float));
#ifndef MENDED
    cudaFree(values);
#endif
    copy<<<1, 32>>>(out, texture);
    return ended();
}

}  // namespace texture_of_freed_memory

// A texture of what the kernel itself writes.
namespace written_texels {

__global__ void twice(float *out, float *numbers, cudaTextureObject_t texture) {
    const int t = threadIdx.x;
    numbers[t] *= 2;  //~ the write
    __syncthreads();
#ifdef MENDED
    out[t] = numbers[63 - t];
#else
    out[t] = tex1Dfetch<float>(texture, 63 - t);  //! noncoherent_read: read through a texture | in another launch
#endif
}

int main() {
    const auto [b, a] = arrays();
    twice<<<1, 64>>>(b, a, texture_of(resource_of(a, 256)));
    return ended();
}

}  // namespace written_texels

// A surface that the kernel has written, after a barrier.
namespace written_surface {

__global__ void turned(float *out, cudaSurfaceObject_t surface) {
    const int t = threadIdx.x;
    surf2Dwrite(float(t), surface, 4 * t, 0);  //~ the write
    __syncthreads();
#ifdef MENDED
    out[t] = 63 - t;
#else
    out[t] = surf2Dread<float>(surface, 4 * (63 - t), 0);  //! noncoherent_read: read through a surface
#endif
}

int main() {
    const auto [b, a] = arrays();
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 64, 1, cudaArraySurfaceLoadStore);
    turned<<<1, 64>>>(b, surface_of(array));
    return ended();
}

}  // namespace written_surface

// The kernel that reads the texture is in another stream than the one that writes it.
namespace texels_of_another_stream {

__global__ void fill(float *numbers) {
    numbers[threadIdx.x] = threadIdx.x;  //~ the write
}

__global__ void fetch(float *out, cudaTextureObject_t texture) {
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);  //! launch_race: read through a texture | wrote at
}

int main() {
    const auto [b, a] = arrays();
    const cudaTextureObject_t texture = texture_of(resource_of(a, 256));
    cudaStream_t one, other;
    cudaStreamCreate(&one);
    cudaStreamCreate(&other);
    cudaDeviceSynchronize();
    fill<<<1, 64, 0, one>>>(a);
#ifdef MENDED
    cudaEvent_t filled;
    cudaEventCreate(&filled);
    cudaEventRecord(filled, one);
    cudaStreamWaitEvent(other, filled);
#endif
    fetch<<<1, 64, 0, other>>>(b, texture);
    return ended();
}

}  // namespace texels_of_another_stream

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(surface_past_the_edge),
                         PROGRAM(surface_row_missing),
                         PROGRAM(surface_x_in_elements),
                         PROGRAM(texture_destroyed),
                         PROGRAM(texture_handle_of_a_surface),
                         PROGRAM(texture_larger_than_memory),
                         PROGRAM(texture_layer_missing),
                         PROGRAM(texture_of_freed_memory),
                         PROGRAM(written_texels),
                         PROGRAM(written_surface),
                         PROGRAM(texels_of_another_stream),
                     });
}
