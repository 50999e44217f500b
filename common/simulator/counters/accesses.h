// What accesses cost: shared memory's banks, global memory's sectors; and the lane addresses of a warp's first
// accesses, for the report (WARPSIM_ACCESSES).
//
// Banks: how many passes ("wavefronts") an access takes. 32 banks of 4 bytes; lanes that want the same word share it.
// An access of 8 bytes a lane goes in phases of 16 lanes, one of 16 bytes in phases of 8. Two phases of a load go as
// one where all lanes i and i ^ 1, or all i and i ^ 2, read the same place (inactive ones do not count): so 8 bytes
// that all read take one pass, and 16 bytes two. Sectors: how many aligned pieces of 32 bytes one warp instruction
// touches.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/op.h"
#include "core/statistics.h"
#include "core/warp.h"

namespace warpsim {

struct SharedCost {
    unsigned wavefronts = 0;
    unsigned ideal = 0;  // phases with a lane in them
};

// address: aligned offsets of the lanes in exec (never 0); the others' are not read. bytes: 1 to 32 a lane.
SharedCost shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec, bool loads = false);

// Loads of so many bytes a lane may have phases that go as one.
inline bool joins_phases(unsigned bytes, bool loads) {
    return loads && (bytes == 8 || bytes == 16);
}

// The same for 32 lanes whose addresses are `stride` bytes apart (modulo 2^32).
inline SharedCost strided_shared_cost(const uint32_t *address, unsigned bytes, uint32_t stride, bool loads) {
    if (stride == 0 && joins_phases(bytes, loads)) return {bytes / 8, bytes / 8};
    const unsigned phases = bytes <= 4 ? 1 : bytes / 4, slots = kLanes / phases;
    if (bytes <= 4 && stride % 4 != 0) {
        if (stride == bytes) return {1, 1};  // neighbours, several in a word
        return shared_cost(address, bytes, kAllLanes);
    }
    const uint32_t step = bytes <= 4 ? stride / 4 : stride / bytes;
    const uint32_t shared_slots = step & -step;  // gcd of step and any larger power of two
    const unsigned passes = step == 0 ? 1 : shared_slots < slots ? shared_slots : slots;
    return {phases * passes, phases};
}

// Where both halves of the warp are regular, as in blocks of 16 columns: lanes i and i + 16 at the same place, or each
// half at one place. False: look at each lane.
inline bool half_warp_shared_cost(const uint32_t *address, unsigned bytes, SharedCost &cost) {
    constexpr unsigned half = kLanes / 2;
    const uint32_t stride = address[1] - address[0], apart = address[half] - address[0];
    uint32_t odd = 0;
    for (unsigned i = 0; i < half; ++i) {
        odd |= (address[i] ^ (address[0] + i * stride)) | (address[i + half] ^ (address[i] + apart));
    }
    if (odd || bytes > 4 || stride % 4 || (stride && apart)) return false;
    if (stride == 0) {
        const uint32_t words = address[half] / 4 - address[0] / 4;
        cost = {words != 0 && words % kLanes == 0 ? 2u : 1u, 1};
        return true;
    }
    const uint32_t step = stride / 4, shared_slots = step & -step;  // gcd of step and any larger power of two
    cost = {shared_slots <= 2 ? 1 : shared_slots < kLanes ? shared_slots / 2 : half, 1};
    return true;
}

// Atomics: lanes with the same word wait for one another too.
SharedCost atomic_shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec);

inline constexpr unsigned kSectorBytes = 32;

struct GlobalCost {
    unsigned sectors = 0;
    unsigned ideal = 0;  // distinct bytes / 32, rounded up
};

// address: aligned addresses of the lanes in exec (never 0); the others' are not read. bytes: 1 to 32 a lane.
GlobalCost global_cost(const uint64_t *address, unsigned bytes, uint32_t exec);

inline void count_global(OpStats &stats, GlobalCost cost, unsigned bytes, uint32_t exec) {
    stats.global_sectors += cost.sectors;
    stats.global_ideal += cost.ideal;
    stats.global_bytes += uint64_t(bytes) * unsigned(__builtin_popcount(exec));
}

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
