// The texture object says that there are more values than were allocated.
#include <cuda_runtime.h>

#include <cstdio>

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
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = values;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = kSize * sizeof(float);
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
    float *out;
    cudaMalloc(&out, 2048 * sizeof(float));
    copy<<<kSize / 256, 256>>>(out, texture);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
