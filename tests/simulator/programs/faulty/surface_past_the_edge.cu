// Threads beyond the right edge of a surface write, too.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void fill(cudaSurfaceObject_t surface, int width) {
    const int x = threadIdx.x, y = blockIdx.x;
    if (x >= width) return;
    surf2Dwrite(1.0f, surface, 4 * x, y);  //! out_of_bounds: writes 4 bytes at x = 80 bytes, y = 0 | 20 x 8 elements
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
#ifdef MENDED
    fill<<<8, 32>>>(surface, 20);
#else
    fill<<<8, 32>>>(surface, 32);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
