// A layer that the array does not have.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void copy(float *out, cudaTextureObject_t t) {
    out[blockIdx.x * 32 + threadIdx.x] =
        tex1DLayered<float>(t, threadIdx.x, blockIdx.x);  //! out_of_bounds: reads layer 3 of a texture that has 3
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMalloc3DArray(&array, &channels, make_cudaExtent(32, 0, 3), cudaArrayLayered);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
    float *out;
    cudaMalloc(&out, 4 * 32 * sizeof(float));
#ifdef MENDED
    copy<<<3, 32>>>(out, texture);
#else
    copy<<<4, 32>>>(out, texture);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
