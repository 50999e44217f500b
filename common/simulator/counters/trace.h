// Records what the warps of a launch's first blocks do (WARPSIM_TRACE). A warp that is recorded has a BlockTrace, all
// others a null pointer, which the warp loop tests once for each run of straight-line ops.
//
// What memory accesses cost is seen by counting: a recorded warp counts into statistics of its block's trace in place
// of its worker's. They are moved there when a piece ends, so that the launch's sums stay what they are.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/program.h"
#include "core/statistics.h"
#include "core/trace.h"
#include "core/warp.h"

namespace warpsim {

// Belongs to one block, which one host thread at a time runs.
class BlockTrace {
  public:
    BlockTrace(const Program &, unsigned warps, const uint32_t (&block)[3]);

    OpStats *stats() { return stats_.data(); }
    // Where the counts go: the statistics of the host thread that runs the block.
    void count_into(std::vector<OpStats> &worker) { worker_ = &worker; }

    // Ops first to last, the one that ends the run of straight-line ops included unless it is an event of its own.
    // (A straight op that is one, such as an arrival, has said so before.)
    void run(const Warp &, uint32_t first, uint32_t last);
    void barrier(const Warp &, const Op &, unsigned number, bool waits);
    void barrier_complete(unsigned number) { ++uses_[number]; }
    // Of mbarriers: by their number in the block.
    void mbarrier_init(uint32_t number, uint32_t address, uint32_t op, uint32_t expected);
    void mbarrier(const Warp &, const Op &, TraceEvent::Kind, uint32_t number, int64_t phase, uint32_t count,
                  uint64_t bytes);
    void warpgroup(const Warp &, const Op &);

    void finish();  // the block has ended
    TracedBlock take() { return std::move(traced_); }

  private:
    struct Open {  // a piece that may go on
        bool is = false;
        uint32_t first = 0, last = 0;
    };

    void extend(uint32_t warp, uint32_t first, uint32_t last);
    void close(uint32_t warp);
    void add(uint32_t warp, TraceEvent);
    TraceCost move_counts(uint32_t op);

    const Program &program_;
    TracedBlock traced_;
    std::vector<OpStats> stats_;
    std::vector<OpStats> *worker_ = nullptr;
    std::vector<Open> open_;                  // by warp
    std::vector<TraceEvent> pending_;         // of the straight run under way
    std::map<TracePiece, uint32_t> numbers_;  // of the pieces so far
    uint32_t uses_[16] = {};                  // of the block's barriers, that are complete
    uint64_t events_ = 0;
};

// The ops that the blocks executed.
std::vector<TracedOp> traced_ops(const Program &, const std::vector<TracedBlock> &);

}  // namespace warpsim
