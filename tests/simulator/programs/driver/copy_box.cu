// A kernel that copies a box of a matrix by its tensor map. wait_first false: it reads the box before it has come.
#include "../tensor_map.h"

extern "C" __global__ void copy_box(const __grid_constant__ CUtensorMap map, float *out, int x, int y, int wait_first) {
    __shared__ alignas(128) float box[8 * 16];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        INIT(&bar, 1);
        FENCE_PROXY();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ARRIVE_EXPECT(&bar, (unsigned)sizeof box);
        LOAD_BOX(box, &map, x, y, &bar);
    }
    if (wait_first) WAIT(&bar, 0);
    out[threadIdx.x] = box[threadIdx.x];
    if (!wait_first) WAIT(&bar, 0);
}
