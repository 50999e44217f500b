#include "timing.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace flash {
namespace {

void must(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Event {
    cudaEvent_t event = nullptr;
    Event() { must(cudaEventCreate(&event)); }
    ~Event() { cudaEventDestroy(event); }
    Event(const Event &) = delete;
};

struct Buffer {
    void *data = nullptr;
    explicit Buffer(size_t bytes) { must(cudaMalloc(&data, bytes)); }
    ~Buffer() { cudaFree(data); }
    Buffer(const Buffer &) = delete;
};

}  // namespace

Timing time_on_gpu(const std::function<void()> &work, int warm_up, int iterations) {
    int device = 0, l2_bytes = 0;
    must(cudaGetDevice(&device));
    must(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
    const size_t flush_bytes = std::max<size_t>(4 * size_t(l2_bytes), 64u << 20);
    Buffer flush(flush_bytes);
    Event start, stop;
    for (int i = 0; i < warm_up; ++i) work();
    std::vector<float> times(iterations);
    for (float &ms : times) {
        must(cudaMemsetAsync(flush.data, 0, flush_bytes));
        must(cudaEventRecord(start.event));
        work();
        must(cudaEventRecord(stop.event));
        must(cudaEventSynchronize(stop.event));
        must(cudaEventElapsedTime(&ms, start.event, stop.event));
    }
    std::sort(times.begin(), times.end());
    const auto quantile = [&](double q) { return times[static_cast<size_t>(q * (times.size() - 1) + 0.5)]; };
    return {quantile(0.5), quantile(0.2), quantile(0.8)};
}

}  // namespace flash
