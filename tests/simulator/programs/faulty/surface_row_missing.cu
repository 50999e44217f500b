// The grid has one row more than the surface: reads of it fault.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void sum(float *out, cudaSurfaceObject_t surface) {
    const int x = threadIdx.x, y = blockIdx.x;
    if (x >= 20) return;
    out[y * 20 + x] = surf2Dread<float>(surface, 4 * x, y);  //! out_of_bounds: reads 4 bytes | y = 8 | 19 more lanes
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
    float *out;
    cudaMalloc(&out, 9 * 20 * sizeof(float));
#ifdef MENDED
    sum<<<8, 32>>>(out, surface);
#else
    sum<<<9, 32>>>(out, surface);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
