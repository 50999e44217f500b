// What arrives later: one queue for each block. Something in it completes to a group of the thread that issued it, to
// an mbarrier or to a bulk group, and arrives when a thread waits for that. What wgmma has in flight is there, too,
// with what it reads of shared memory: tiles by their descriptors, in chunks of 16 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/op.h"
#include "core/op_formats.h"
#include "core/warp.h"
#include "core/wgmma_descriptor.h"
#include "hazard/clocks.h"
#include "hazard/shared_tile.h"

namespace warpsim {

// A tile of `lines` lines of `chunks` chunks: K-major m or n lines of k, MN-major k lines of m or n.
struct WgmmaTile {
    std::shared_ptr<const SharedTile> places;  // line by line
    uint32_t lines = 0, chunks = 0;
    bool mn_major = false;
    std::string fault;  // what is wrong with the descriptor, if anything
    // The fault is that the tile does not begin where the swizzle's pattern does, and its base offset is 0: what copies
    // have brought there is right all the same, for they swizzle by the address, as wgmma does then.
    bool right_for_copies = false;
};

// Tiles by descriptor and shape: a kernel's loops come back to the same ones.
class WgmmaTiles {
  public:
    // major: of m or n; k_bytes: of the tile along k, 32.
    std::shared_ptr<const WgmmaTile> find(uint64_t descriptor, uint32_t major, bool mn_major, uint32_t element_bytes);

  private:
    std::map<std::tuple<uint64_t, uint32_t, bool>, std::shared_ptr<const WgmmaTile>> tiles_;
};

inline constexpr unsigned kWarpgroupWarps = 4;

// One wgmma that no wait has covered, as a warp sees it.
struct WgmmaInFlight {
    const Op *op = nullptr;
    uint64_t group = 0;   // how many groups the warp had committed before
    uint32_t reads = 0;   // the shadow's number
    bool missed = false;  // a wait came and it had not been committed
};

struct WgmmaWarp {
    std::vector<WgmmaInFlight> in_flight;  // oldest first
    uint64_t committed = 0;                // groups so far
    const Op *wait = nullptr;              // the last one, for messages; null: there was none
    uint64_t wait_committed = 0;           // groups at that wait
    uint32_t wait_reads = 0;               // the shadow's number of the last wgmma before it
    uint32_t registers = 0;                // of each thread, as setmaxnreg left them
};

// A block's share of wgmma and of the registers that setmaxnreg moves.
struct WgmmaQueue {
    bool used = false;  // the rest says something
    std::vector<WgmmaWarp> warps;
    uint64_t free_registers = 0;  // of the block's pool
    WgmmaTiles tiles;
    // The queue, empty at the block's first use of it.
    WgmmaQueue &of(const Block &);
};

// A thread's last wait for groups, for messages.
struct GroupWait {
    const Op *op = nullptr;  // null: there was none
    uint64_t issued = 0;     // what the block had issued by then
    uint64_t committed = 0;  // groups
};

// One warp instruction's copies by cp.async. Each lane's completes to a group of that lane.
struct AsyncCopy {
    uint32_t lanes = 0;  // still in flight
    uint32_t bytes = 0;
    uint64_t number = 0;                   // in the order of the block's issues
    std::array<uint64_t, kLanes> group{};  // by lane: how many groups it had committed before
    std::array<uint32_t, kLanes> to{};     // offset in shared memory
    std::array<std::array<std::byte, 16>, kLanes> data{};
};

// A warp's copies in flight, oldest first.
struct AsyncGroups {
    std::vector<AsyncCopy> copies;
    std::array<uint64_t, kLanes> committed{};  // groups so far, by lane
    bool used = false;
    // The last wait while something was in flight, for messages.
    const Op *wait = nullptr;
    uint32_t wait_lanes = 0;
    uint64_t wait_issued = 0;
    std::array<uint64_t, kLanes> wait_committed{};
};

// An mbarrier between its init and its inval. Its own bytes in shared memory stay 0.
struct Mbarrier {
    uint32_t expected = 0, pending = 0;  // arrivals
    int64_t bytes = 0;                   // announced and not arrived yet, or the other way round
    uint64_t phase = 0;                  // the open one
    uint32_t initialised = 0;            // op
    uint32_t number = 0;                 // of the block's, in the order of their inits
};

// What completes to an mbarrier: a bulk copy into shared memory, or arrivals behind copies by cp.async.
struct MbarrierArrival {
    Warp *warp = nullptr;
    const Op *op = nullptr;
    uint32_t lanes = 0;  // that issued it; of a bulk copy one
    uint32_t mbarrier = 0;
    uint64_t number = 0;            // in the order of the block's issues
    Clocks::Shared knowledge;       // arrivals: what the lanes release
    uint32_t stamp = 0;             // of the lanes' copies when they have arrived
    uint32_t to = 0, transfer = 0;  // bulk copy: offset in shared memory, and the shadow's number
    std::vector<std::byte> data;    // none: arrivals, or what has been written before
    uint32_t bytes = 0;             // that it announces as arrived; 0: those of data
    const Block *source = nullptr;  // whose shared memory it is read from when it arrives
    uint32_t source_at = 0, source_transfer = 0;
    bool reduced = false;  // it has been written, atomically
};

// A part of what a store writes: bytes [at, at + bytes) of its source go to device address `to`.
struct StorePart {
    uint32_t at = 0, bytes = 0;
    uint64_t to = 0;
    std::byte *host = nullptr;
};

// A bulk copy or reduction from shared to global memory, which completes to a bulk group of its thread.
struct BulkStore {
    Warp *warp = nullptr;
    const Op *op = nullptr;
    unsigned lane = 0;
    uint64_t group = 0;   // how many groups the thread had committed before
    uint64_t number = 0;  // in the order of the block's issues
    uint32_t from = 0, bytes = 0, transfer = 0;
    uint64_t to = 0;            // device address
    std::byte *host = nullptr;  // of `to`; null: it goes to parts
    std::vector<StorePart> parts;
    bool waited = false;          // for its source
    bool written = false;         // its destination, as it was issued
    std::vector<std::byte> data;  // its source, once that has been read
};

struct Completions {
    std::vector<AsyncGroups> groups;                          // by warp
    std::map<uint32_t, Mbarrier> mbarriers;                   // by offset in shared memory
    std::vector<MbarrierArrival> arrivals;                    // oldest first
    std::vector<BulkStore> stores;                            // oldest first
    std::vector<uint64_t> bulk_groups;                        // committed so far, by thread
    std::map<uint32_t, std::array<GroupWait, 2>> bulk_waits;  // by thread: for the whole, and with .read
    WgmmaQueue wgmma;
    std::map<uint64_t, uint32_t> changed_maps;  // in global memory, not acquired since: address -> the op that did it
    uint64_t issued = 0;                        // copies and arrivals so far
    uint32_t inits = 0;                         // of mbarriers so far
    uint64_t changes = 0;                       // of mbarriers so far

    void start_block(unsigned warps);
    bool has_groups(unsigned warp) const { return groups[warp].used; }
    AsyncGroups &groups_of(unsigned warp) {
        groups[warp].used = true;
        return groups[warp];
    }
};

// What lanes of exec issued before before[lane] arrives, in groups or (by_number) in the order of issues.
void deliver_copies(Warp &, const Op &, const std::array<uint64_t, kLanes> &before, bool by_number, uint32_t exec,
                    uint32_t stamp);
// Global loads of bytes that bulk stores may still be writing: reported. Addresses first to last.
void check_unfinished_stores(Warp &, const Op &, uint64_t first, uint64_t last);
// Parts of a store: its source is read, its destination is written.
void read_source(BulkStore &);
void write_destination(BulkStore &);
// The block has ended: what nobody waited for reaches global memory.
void finish_stores(Block &);
// The block has ended: a copy that nobody has waited for may read or write what is another block's by then.
void check_copies_left(Block &);

}  // namespace warpsim
