extern "C" __device__ int twice(int x);

extern "C" __global__ void quadruple(int *value) {
    *value = twice(twice(*value));
}
