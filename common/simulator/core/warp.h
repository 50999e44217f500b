// What a handler sees of the machine: the warp that executes it, the block, counters and hazards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/hazard_kind.h"
#include "core/op.h"
#include "core/statistics.h"

namespace warpsim {

class GlobalMemory;
struct ClusterContext;  // machine/cluster.h
class SharedShadow;
class GlobalShadow;
struct AllocationView;
class AccessLog;
class BlockTrace;
struct Completions;
struct Block;
class Definedness;
class RegisterShadow;
class UndefinedBytes;
struct Program;

// Device addresses as programs see them. Generic addresses carry their window in the top byte.
inline constexpr uint64_t kSharedWindow = 0x0100000000000000ull;  // + offset in the block's shared memory
inline constexpr unsigned kRankShift = 24;                        // rank of the block there, in .shared::cluster
inline constexpr uint64_t kLocalWindow = 0x0200000000000000ull;   // + offset in the thread's local memory
inline constexpr uint64_t kParamWindow =
    0x0300000000000000ull;  // + offset in the kernel's parameter block (cvta.param)
inline constexpr uint64_t kWindowMask = 0xff00000000000000ull;

struct Warp {
    std::byte *regs = nullptr;                  // register slots of the current frame
    uint32_t exec = 0;                          // lanes that execute the current op
    uint32_t alive = 0;                         // lanes that have not exited
    uint32_t carry = 0;                         // condition code CC.CF of add.cc ...: a bit for each lane
    uint32_t id = 0;                            // in the block
    uint32_t agent = 0;                         // in the cluster: rank of the block * its warps + id
    Block *block = nullptr;                     // its own; for a moment a peer, while it uses that one's shared memory
    OpStats *stats = nullptr;                   // [Program::ops.size()], this worker's
    std::byte *local = nullptr;                 // local memory: lane l's bytes start at local + l * local_bytes
    uint64_t local_bytes = 0;                   // per thread
    std::byte *params = nullptr;                // the kernel's parameter block (same for all lanes)
    RegisterShadow *undefined = nullptr;        // of the registers in regs; null: all of them are defined
    bool tracking_began = false;                // by the op under way, which has to leave the loop that does not track
    UndefinedBytes *undefined_local = nullptr;  // of local memory; null: not looked at
    AccessLog *accesses = nullptr;  // of the warp whose accesses are asked for (WARPSIM_ACCESSES), else null
    BlockTrace *trace = nullptr;    // of its block, where that is recorded (WARPSIM_TRACE), else null

    template <class T>
    T *lanes(uint32_t slot) const {
        return reinterpret_cast<T *>(regs + slot);
    }
    uint32_t &predicate(uint32_t slot) const { return *reinterpret_cast<uint32_t *>(regs + slot); }
};

// A piece of global memory that an op touched last, so that the next time needs no search.
struct GlobalWindow {
    uint64_t base = 0, bytes = 0;
    std::byte *host = nullptr;
    bool constant = false;  // stores are errors
    // All accesses of n bytes at addresses from first to last lie inside.
    bool contains(uint64_t first, uint64_t last, unsigned n) const {
        return first >= base && bytes >= n && last - base <= bytes - n;
    }
};
inline constexpr unsigned kGlobalWindows = 16;

// What is waited for by groups.
enum class Grouped : uint8_t { cp_async, bulk_store, wgmma };

// Where a block's hazards go.
struct HazardSink {
    virtual ~HazardSink() = default;
    virtual void report(Warp &, const Op &, HazardKind, int lane, uint64_t address, std::string message) = 0;
    // Counts a hazard if the launch goes on after it and one of this kind, with this other op (kNoSlot: none), has been
    // reported at the op. False: it must be reported.
    virtual bool repeats(const Op &, HazardKind, uint32_t) { return false; }
    // For messages: what a thread (of wgmma a warp) has done about the group of something in flight, as a clause about
    // `who`: "`cp.async.wait_group 2` at kernel.cu:41 leaves the newest two groups in flight, and `needs` needs the
    // second newest". Of cp.async `which` is its address in shared memory, of the others the shadow's number.
    virtual std::string wait_text(Grouped, unsigned, unsigned, uint32_t, const std::string &, const std::string &) {
        return "";
    }
    // The op at which the thread last waited for groups of cp.async; kNoSlot: it has not.
    virtual uint32_t last_copy_wait(unsigned, unsigned) { return kNoSlot; }
};

class PendingUpdates;  // machine/late_stores.h
class LateStores;      // machine/late_stores.h

// Where a shared address must be.
struct SharedRoom {
    uint32_t begin, bytes;
};

struct Block {
    const Program *program = nullptr;
    GlobalMemory *global = nullptr;
    std::byte *shared = nullptr;  // Program::reserved_shared bytes, then static, then dynamic shared memory
    uint32_t shared_bytes = 0;
    // By Op::target of an op that names shared memory: 0 for all of the block's, else one more than the index into
    // Program::shared_variables, of the variable that the address is computed from (Lowering::shared_variable).
    std::vector<SharedRoom> shared_rooms;
    SharedShadow *shadow = nullptr;         // null where hazards are off
    GlobalShadow *global_shadow = nullptr;  // the same of global memory; of the whole cluster
    uint32_t ctaid[3] = {}, ntid[3] = {}, nctaid[3] = {};
    uint32_t linear_id = 0;             // of the block in the order of the grid's clusters, and of blocks in a cluster
    uint32_t rank = 0;                  // in its cluster
    ClusterContext *cluster = nullptr;  // null: it runs by itself
    uint32_t warps = 0;
    GlobalWindow windows[kGlobalWindows];  // by op index, modulo; a Block lives no longer than its launch
    HazardSink *hazards = nullptr;
    Definedness *definedness = nullptr;  // null where hazards are off
    Completions *completions = nullptr;  // what arrives later: machine/completions.h
    PendingUpdates *pending = nullptr;   // null where the program has no updates that commute
    LateStores *late_stores = nullptr;   // of the whole cluster; null: other blocks see each store at once
    BlockTrace *trace = nullptr;         // null: it is not recorded
};

// What ends a launch is thrown.
struct LaunchAborted {};

// Records a hazard of lane `lane` (-1: the whole warp) at op; the message gets kernel, block, warp, source
// line and the other side's line from the caller's text. Fatal kinds, and all kinds unless
// WARPSIM_HAZARDS=warn, throw LaunchAborted and so end the launch with a CUDA error.
inline void report_hazard(Warp &w, const Op &op, HazardKind kind, int lane, uint64_t address, std::string message) {
    w.block->hazards->report(w, op, kind, lane, address, std::move(message));
}

// Writes f(i) to every executing lane of dst. The compiler vectorises both loops.
template <class T, class F>
inline void write_lanes(Warp &w, uint32_t dst, F f) {
    T *d = w.lanes<T>(dst);
    if (w.exec == kAllLanes) {
#pragma GCC ivdep
        for (unsigned i = 0; i < kLanes; ++i) d[i] = f(i);
    } else {
        const uint32_t exec = w.exec;
#pragma GCC ivdep
        for (unsigned i = 0; i < kLanes; ++i) d[i] = (exec >> i & 1) ? T(f(i)) : d[i];
    }
}

// Writes a predicate: bit i = f(i) for executing lanes, unchanged elsewhere.
template <class F>
inline void write_predicate(Warp &w, uint32_t dst, F f) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < kLanes; ++i) bits |= uint32_t(bool(f(i))) << i;
    uint32_t &p = w.predicate(dst);
    p = (p & ~w.exec) | (bits & w.exec);
}

}  // namespace warpsim
