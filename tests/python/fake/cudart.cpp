// A CUDA runtime with host memory behind it, enough for the package's own calls: lets its tests run the worker
// and the benchmark with no GPU and no simulator.
#include <chrono>
#include <cstdlib>
#include <cstring>

extern "C" {
int cudaMalloc(void **pointer, size_t size) {
    return (*pointer = std::aligned_alloc(256, (size + 255) / 256 * 256)) ? 0 : 2;
}
int cudaSetDeviceFlags(unsigned) {
    return 0;
}
int cudaFree(void *pointer) {
    return std::free(pointer), 0;
}
int cudaMemcpy(void *to, const void *from, size_t size, int) {
    return std::memcpy(to, from, size), 0;
}
int cudaMemsetAsync(void *pointer, int byte, size_t size, void *) {
    return std::memset(pointer, byte, size), 0;
}
int cudaDeviceSynchronize() {
    return std::getenv("FAKE_FAILURE") ? 719 : 0;
}
int cudaMemGetInfo(size_t *free, size_t *total) {
    return *free = *total = size_t(1) << 30, 0;
}
int cudaDeviceGetAttribute(int *value, int, int) {
    return *value = 1 << 20, 0;
}
int cudaRuntimeGetVersion(int *version) {
    return *version = 13000, 0;
}
const char *cudaGetErrorString(int) {
    return "a planted failure";
}

using Clock = std::chrono::steady_clock;
int cudaEventCreate(void **event) {
    return *event = new Clock::time_point, 0;
}
int cudaEventRecord(void *event, void *) {
    return *static_cast<Clock::time_point *>(event) = Clock::now(), 0;
}
int cudaEventSynchronize(void *) {
    return 0;
}
int cudaEventElapsedTime(float *ms, void *start, void *stop) {
    auto span = *static_cast<Clock::time_point *>(stop) - *static_cast<Clock::time_point *>(start);
    *ms = std::chrono::duration<float, std::milli>(span).count();
    return 0;
}
}
