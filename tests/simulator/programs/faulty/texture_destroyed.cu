// The kernel uses a texture object that was destroyed.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void copy(float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);  //! invalid_argument: texture object | that was destroyed
}

int main() {
    float *values;
    cudaMalloc(&values, 1024 * sizeof(float));
    cudaMemset(values, 0, 1024 * sizeof(float));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = values;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = 1024 * sizeof(float);
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
    float *out;
    cudaMalloc(&out, 2048 * sizeof(float));
#ifndef MENDED
    cudaDestroyTextureObject(texture);
#endif
    copy<<<1, 32>>>(out, texture);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
