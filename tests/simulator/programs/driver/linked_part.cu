// A function that the kernel of linked_main.cu calls.
extern "C" __device__ int twice(int x) {
    return 2 * x;
}
