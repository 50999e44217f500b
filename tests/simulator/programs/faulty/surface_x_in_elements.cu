// The first coordinate of a surface counts bytes, not elements.
#include <cuda_runtime.h>

#include <cstdio>

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
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &resource);
    fill<<<8, 32>>>(surface);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
