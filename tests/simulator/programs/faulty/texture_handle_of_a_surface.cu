// A surface object is no texture object.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void copy(float *out, cudaTextureObject_t t) {
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 3);  //! invalid_argument: is a surface object, not a texture object
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &channels, 20, 8, cudaArraySurfaceLoadStore);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &resource);
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
    float *out;
    cudaMalloc(&out, 20 * sizeof(float));
#ifdef MENDED
    copy<<<1, 32>>>(out, texture);
#else
    copy<<<1, 32>>>(out, surface);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
