#include "timing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device_array.h"

namespace flash {
namespace {

struct Event {
    cudaEvent_t event = nullptr;
    Event() { must(cudaEventCreate(&event), "cudaEventCreate"); }
    ~Event() { cudaEventDestroy(event); }
    Event(const Event &) = delete;
};

}  // namespace

Timing time_on_gpu(const std::function<void()> &work, int warm_up, int iterations) {
    int device = 0, l2_bytes = 0;
    must(cudaGetDevice(&device), "no usable CUDA device");
    must(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "size of the L2 cache");
    const size_t flush_bytes = std::max<size_t>(4 * size_t(l2_bytes), 64u << 20);
    const DeviceArray flush(flush_bytes);
    Event start, stop;
    for (int i = 0; i < warm_up; ++i) work();
    std::vector<float> times(iterations);
    for (float &ms : times) {
        must(cudaMemsetAsync(flush.data(), 0, flush_bytes), "cudaMemsetAsync");
        must(cudaEventRecord(start.event), "cudaEventRecord");
        work();
        must(cudaEventRecord(stop.event), "cudaEventRecord");
        must(cudaEventSynchronize(stop.event), "the timed work");
        must(cudaEventElapsedTime(&ms, start.event, stop.event), "cudaEventElapsedTime");
    }
    std::sort(times.begin(), times.end());
    const auto quantile = [&](double q) { return times[static_cast<size_t>(q * (times.size() - 1) + 0.5)]; };
    const double median = quantile(0.5), p20 = quantile(0.2), p80 = quantile(0.8);
    return {median, p20, p80, std::move(times)};
}

}  // namespace flash
