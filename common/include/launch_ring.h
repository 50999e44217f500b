// What the host parts of the stages for several GPUs share, as launch.h has it for one GPU: argument checks and their
// texts, peer access, events, the library that computes attention. Which copy, kernel and wait goes where stands in the
// stages. Implemented in common/host/launch_ring.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "attention_ring.h"
#include "kernel_queue.h"

namespace flash {

constexpr int most_ranks = 64;

// Piece i of n: all have N / n rows, or one more. N need not be a multiple of n.
inline FlashRingPiece ring_piece(int N, int i, int n) {
    const int first = static_cast<int>(int64_t{i} * N / n), end = static_cast<int>(int64_t{i + 1} * N / n);
    return {first, end - first};
}

inline int ring_rows(const FlashRingDescription &description) {
    return description.pieces[0].rows + description.pieces[1].rows;
}

// Thrown by must() and by what uses it; fail() has the text. ring_call() makes a status of it again.
struct RingFailure {
    FlashStatus status;
};
void must(cudaError_t error, const char *what);
void must(FlashStatus status);

// Calls `body`; the device that was current is so again afterwards.
FlashStatus ring_call(const std::function<void()> &body);

using DescribeRank = FlashRingDescription (*)(const FlashRingParams &, int rank);

// Throws where the problem is wrong or beyond the stage's limits: the sizes alone. pieces: of each rank, 1 or 2.
void check_ring_sizes(const FlashRingParams *params, int rank, const Limits &limits, int pieces);

// ... and the ranks: devices, tensors, workspaces (of which `describe` tells the bytes). Enables peer access between
// all devices, or throws where a device cannot reach the memory of another.
void check_ring(const FlashRingParams *params, const FlashRank *ranks, const Limits &limits, DescribeRank describe);

// For a stage with an attention kernel of its own, which waits for copies that are queued after it: throws where
// another library is to compute, and where two ranks have the same device, whose copies may need multiprocessors.
void check_own_kernel(const FlashRingParams *params, const FlashRank *ranks, const Limits &limits);

// Another stage's library, which computes attention between some rows of Q and some of K and V.
class Forward {
  public:
    // params.forward, or the library of stage 23 beside this one.
    explicit Forward(const FlashRingParams &params);

    // Throws unless the stage takes this problem, tells the log-sum-exp and needs no workspace.
    void check(const FlashRingParams &params, int Nq, int Nkv, bool causal) const;

    void operator()(const FlashParams &call, cudaStream_t stream) const;

  private:
    void pass(FlashStatus status) const;

    decltype(&flash_forward) forward_;
    decltype(&flash_describe) describe_;
    decltype(&flash_last_error) last_error_;
};

// Attention with the heads, type, scale and configuration of the whole problem, between no rows yet.
FlashParams part_of(const FlashRingParams &params);

// [B, heads, rows, d_head] without gaps.
FlashTensor without_gaps(void *data, int heads, int rows, int d_head);

// The tensor from one of its rows on.
FlashTensor from_row(FlashTensor tensor, int row);

// The stream writes a flag when it has done all that it has been given before: kernels that read it with .acquire at
// system scope see that as well.
void write_value(cudaStream_t stream, uint32_t *flag, uint32_t value);

// What lies in a workspace, one thing after the other. Without a workspace it counts the bytes.
class WorkspaceLayout {
  public:
    explicit WorkspaceLayout(void *workspace = nullptr) : base_(static_cast<char *>(workspace)) {}

    void *take(size_t bytes) {
        void *at = base_ ? base_ + used_ : nullptr;
        used_ += (bytes + 255) / 256 * 256;
        return at;
    }
    size_t bytes() const { return used_; }

  private:
    char *base_;
    size_t used_ = 0;
};

// The work of all ranks while it is queued. Its events live as long as it does, and longer where work still waits for
// them.
class RingQueue {
  public:
    RingQueue(const FlashRingParams &params, const FlashRank *ranks) : params_(params), ranks_(ranks) {}

    const FlashRingParams &params() const { return params_; }
    const FlashRank &operator[](int rank) const { return ranks_[rank]; }

    // Makes the rank's device the current one.
    void use(int rank) const;

    // An event that is reached when all is done that the stream, one of the rank's, has been given so far.
    cudaEvent_t record(int rank, cudaStream_t stream);

    // What the stream, one of the rank's, is given from now on begins after the event, of whatever device. Null: at
    // once.
    void wait(int rank, cudaStream_t stream, cudaEvent_t event) const;

  private:
    using Event = std::unique_ptr<CUevent_st, cudaError_t (*)(cudaEvent_t)>;

    const FlashRingParams &params_;
    const FlashRank *ranks_;
    std::vector<Event> events_;
};

// Tells the caller (FlashRingParams::mark) of the work that is queued during its life. The rank's device is current.
class RingMark {
  public:
    RingMark(const FlashRingParams &params, int rank, FlashRingWork work, int source, cudaStream_t stream)
        : params_(params), rank_(rank), work_(work), source_(source), stream_(stream) {
        tell(0);
    }
    ~RingMark() { tell(1); }
    RingMark(const RingMark &) = delete;

  private:
    void tell(int end) const {
        if (params_.mark) params_.mark(params_.mark_context, rank_, work_, source_, end, stream_);
    }

    const FlashRingParams &params_;
    int rank_, work_, source_;
    cudaStream_t stream_;
};

}  // namespace flash
