// The runs of equal neighbours in an array, by cub::DeviceRunLengthEncode.
#include <cstdio>
#include <cub/device/device_run_length_encode.cuh>
#include <vector>

int main() {
    std::vector<int> items(2000);
    for (int i = 0; i < int(items.size()); ++i) items[i] = i / 3 + i % 2;
    int *device_items, *offsets, *lengths, *count;
    cudaMalloc(&device_items, items.size() * sizeof(int));
    cudaMalloc(&offsets, items.size() * sizeof(int));
    cudaMalloc(&lengths, items.size() * sizeof(int));
    cudaMalloc(&count, sizeof(int));
    cudaMemcpy(device_items, items.data(), items.size() * sizeof(int), cudaMemcpyHostToDevice);
    void *scratch = nullptr;
    size_t bytes = 0;
    for (int turn = 0; turn < 2; ++turn) {  // the first call says how many bytes it needs
        cub::DeviceRunLengthEncode::NonTrivialRuns(scratch, bytes, device_items, offsets, lengths, count,
                                                   int(items.size()));
        if (!scratch) cudaMalloc(&scratch, bytes);
    }
    int found = 0;
    const cudaError_t error = cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost);
    printf("%d runs: %s\n", found, cudaGetErrorString(error));
    return error != cudaSuccess;
}
