// The lane addresses of a warp's first accesses to shared and global memory, for the report (WARPSIM_ACCESSES).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/statistics.h"
#include "exec/banks.h"
#include "exec/coalescing.h"

namespace warpsim {

// Belongs to one warp: nobody else writes to it.
class AccessLog {
  public:
    // Keeps the first `most` executions of each op.
    AccessLog(const Program &, uint64_t most);

    // Addresses of the lanes in exec; the others' are not read. matrices: of ldmatrix and stmatrix, else 0.
    void shared(const Op &, const uint32_t *offset, unsigned bytes, uint32_t exec, SharedCost, unsigned matrices = 0);
    void global(const Op &, const uint64_t *address, unsigned bytes, uint32_t exec, GlobalCost);

    // A copy of a box that a lane issues; the caller fills in what it knows of it. Null: enough of them have been seen.
    BoxRecord *box(const Op &, unsigned lane);

    std::vector<BoxRecord> take_boxes() { return std::move(boxes_); }
    std::vector<AccessRecord> take() { return std::move(records_); }

  private:
    AccessRecord *add(const Op &, unsigned bytes, uint32_t exec);

    const Program &program_;
    uint64_t most_;
    std::vector<uint64_t> shared_seen_, global_seen_;  // by op
    std::vector<AccessRecord> records_;
    std::vector<BoxRecord> boxes_;
};

}  // namespace warpsim
