// What the program (main.cpp) hands to the variants (host_streams.cpp): a batch in host memory, room for chunks of it
// on the device, and a kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace streams {

struct CudaError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void must(cudaError_t error, const char *what) {
    if (error != cudaSuccess) throw CudaError(std::string(what) + ": " + cudaGetErrorString(error));
}

// The same elements of the four tensors, in host or in device memory; 16-bit numbers.
struct Slice {
    uint16_t *Q = nullptr, *K = nullptr, *V = nullptr, *O = nullptr;
};

// Events around pieces of work in streams, from which the timeline is drawn.
class Recorder {
  public:
    struct Span {
        const char *kind;   // "copy in", "compute" or "copy out"
        int chunk, stream;  // the stream's index, -1 for the default stream
        cudaEvent_t start, end;
    };
    void begin(const char *kind, int chunk, int index, cudaStream_t);
    void end(cudaStream_t);
    const std::vector<Span> &spans() const { return spans_; }

  private:
    std::vector<Span> spans_;
};

struct Work {
    Slice host;                         // the whole batch, [batch, H, N, d_head] each; pinned or pageable
    int chunks = 1;                     // it is cut into so many, of `elements` numbers in each tensor
    size_t elements = 0;                // ... that is [batch / chunks, H, N, d_head]
    std::vector<cudaStream_t> streams;  // none of them waits for the default stream, nor it for them
    std::vector<Slice> device;          // a set of buffers for each stream: Q, K, V and O of one chunk
    // Queues attention of one chunk, from and to the s-th set of buffers, on a stream (null: the default stream).
    std::function<void(int s, cudaStream_t)> attention;
    Recorder *recorder = nullptr;  // null: nothing is recorded

    // Which of `streams` it is; -1: the default stream.
    int index_of(cudaStream_t stream) const {
        const auto found = std::find(streams.begin(), streams.end(), stream);
        return found == streams.end() ? -1 : static_cast<int>(found - streams.begin());
    }
    size_t bytes() const { return elements * sizeof(uint16_t); }
    Slice chunk(int c) const {
        const size_t at = c * elements;
        return {host.Q + at, host.K + at, host.V + at, host.O + at};
    }
};

// Records events before and after what its block queues on a stream.
class Recorded {
  public:
    Recorded(const Work &work, const char *kind, int chunk, cudaStream_t stream)
        : recorder_(work.recorder), stream_(stream) {
        if (recorder_) recorder_->begin(kind, chunk, work.index_of(stream), stream);
    }
    ~Recorded() noexcept(false) {
        if (recorder_) recorder_->end(stream_);
    }
    Recorded(const Recorded &) = delete;

  private:
    Recorder *recorder_;
    cudaStream_t stream_;
};

// The variants. Each returns when all of the batch's O is in host memory.
void serial(const Work &);        // blocking copies
void one_stream(const Work &);    // asynchronous copies, all in one stream
void many_streams(const Work &);  // chunk c in stream c modulo their number
void by_engine(const Work &);     // a stream for copies in, one for kernels, one for copies out, ordered by events

}  // namespace streams
