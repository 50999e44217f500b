// The machine's own state: frames, fragments of warps, blocks, and the worker threads that run them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/program.h"
#include "core/warp.h"
#include "counters/accesses.h"
#include "counters/trace.h"
#include "definedness/definedness.h"
#include "definedness/registers.h"
#include "hazard/global_conflicts.h"
#include "hazard/global_shadow.h"
#include "hazard/shared_shadow.h"
#include "machine/completions.h"
#include "machine/late_stores.h"
#include "machine/launch.h"

namespace warpsim {

struct BlockContext;
struct Worker;

// A piece of zeroed memory aligned for vectors; grows, never shrinks.
class AlignedBytes {
  public:
    AlignedBytes() = default;
    AlignedBytes(const AlignedBytes &) = delete;
    AlignedBytes &operator=(const AlignedBytes &) = delete;
    AlignedBytes(AlignedBytes &&other) noexcept : data_(other.data_), bytes_(other.bytes_) {
        other.data_ = nullptr;
        other.bytes_ = 0;
    }
    AlignedBytes &operator=(AlignedBytes &&) = delete;
    ~AlignedBytes() { release(); }
    std::byte *data() const { return data_; }
    size_t size() const { return bytes_; }
    void reserve(size_t bytes);

  private:
    void release();
    std::byte *data_ = nullptr;
    size_t bytes_ = 0;
};

// One activation of a function by the lanes that called it together.
struct Frame {
    Frame *parent = nullptr;
    const Program::Function *function = nullptr;
    const Op *call = nullptr;  // in the parent
    std::byte *regs = nullptr;
    uint32_t return_pc = 0;
    uint32_t depth = 0;
    uint32_t local_base = 0;  // of its variables in each lane's local memory
    uint32_t lanes = 0;       // that have not returned from it
    AlignedBytes memory;
    std::unique_ptr<RegisterShadow> shadow;  // all is defined unless `tracked`
    bool tracked = false;
    uint32_t tracked_ops = 0;  // since somebody looked whether it must be
    bool prepared = false;     // holds the function's constants and special registers of an earlier block
};

enum class Wait : uint8_t { nothing, warp_sync, barrier, mbarrier, warpgroup, cluster };

// Lanes of a warp that are at the same place. A warp starts as one fragment, splits where lanes branch apart and merges
// where they meet.
struct Fragment {
    uint32_t pc = 0;
    uint32_t mask = 0;
    Frame *frame = nullptr;
    Wait wait = Wait::nothing;
    uint8_t barrier = 0;   // Wait::barrier: its number
    bool yielded = false;  // it spins: the other fragments of the warp go first
    bool in_vain = false;  // its wait for an mbarrier ended without success: the op says so
    bool waited = false;   // it has waited at the op that it comes to
    uint32_t polls = 0;
    uint64_t executed = 0;  // since it was last made to yield
};

// What a warp-synchronous handler sees of its group.
struct SyncView {
    uint32_t members = 0;               // all lanes that take part
    const std::byte *values = nullptr;  // source `a` of all of them, gathered as in a slot; null: they are in w.regs
    // Its undefined bits and their origins, gathered likewise; null: they are in w.undefined.
    const std::byte *undefined = nullptr;
    const uint32_t *origins = nullptr;
};

// The last ordered op that a warp executed in its block's turn.
struct LastPoll {
    const Op *op = nullptr;
    uint32_t lanes = 0;
    unsigned in_vain = 0;  // how often in a row it has left its register as it was
};

struct WarpContext : Warp {
    std::array<Fragment, kLanes + 1> fragments;  // one more: a fragment may be empty for a moment
    uint32_t count = 0;                          // of fragments
    uint32_t exist = 0;                          // lanes that the launch has
    SyncView sync;
    Frame kernel_frame;
    std::vector<std::unique_ptr<Frame>> call_frames;  // of device functions, in use
    Frame *frame = nullptr;                           // that regs are of
    AlignedBytes local_memory;
    UndefinedBytes local_shadow;
    BlockContext *owner = nullptr;
    Worker *worker = nullptr;
    uint32_t linear_thread = 0;  // of lane 0 in the block
    bool wants_turn = false;     // its next op is ordered, and it is not the block's turn
    LastPoll last_poll;          // in this turn
    uint64_t ldmatrix_in_a_row = 0;
};

inline WarpContext &context_of(Warp &w) {
    return static_cast<WarpContext &>(w);
}

// bar.sync and friends, instructions/barrier/barrier.cpp.
struct Barrier {
    std::vector<uint32_t> arrived;  // lanes by warp: all that count, bar.arrive included
    std::vector<uint32_t> waiting;  // lanes by warp
    uint32_t expected = 0;          // threads; 0: all of the block that have not exited
    uint32_t again = 0;             // threads that have arrived a second time, which count again
    bool active = false;
    bool value_all = true, value_any = false;
    uint32_t value_count = 0;
    std::vector<uint32_t> first_op;  // by warp: the op at which its first lanes arrived, kNoSlot: none
};

struct BlockContext : Block, HazardSink {
    void report(Warp &, const Op &, HazardKind, int lane, uint64_t address, std::string message) override;
    bool repeats(const Op &, HazardKind, uint32_t other_op) override;
    std::string wait_text(Grouped, unsigned warp, unsigned lane, uint32_t which, const std::string &who,
                          const std::string &needs) override;
    uint32_t last_copy_wait(unsigned warp, unsigned lane) override;
    // What ptxas repairs: a hazard with WARPSIM_HAZARDS=strict, else the report says it and the launch goes on.
    void note(Warp &, const Op &, HazardKind, std::string message);
    std::vector<std::unique_ptr<WarpContext>> contexts;
    uint32_t threads = 0;
    uint32_t alive = 0;  // threads that have not exited
    std::array<Barrier, 16> barriers;
    AlignedBytes shared_memory;
    std::unique_ptr<SharedShadow> shadow_memory;
    std::unique_ptr<GlobalShadow> own_global_shadow;  // of the first block of a team, for all of it
    std::unique_ptr<LateStores> own_late_stores;      // likewise
    Definedness defined;
    Completions arriving;
    std::string output;  // of printf
    DeviceRuntime device_runtime;
    uint32_t next_warp = 0;
    uint64_t vain_changes = ~0ull;  // of mbarriers, when waits for them last ended in vain
    unsigned vain_rounds = 0;       // since then
    uint64_t random = 0;            // state of the schedule's random numbers; 0: the default order
    Worker *worker = nullptr;
    std::shared_ptr<ClusterContext> own_cluster;  // of the first block of a cluster
    uint64_t now = 0;                             // warp instructions executed, the block's clock
    uint64_t clock_lead = 0;                      // what its clock shows beyond them: time that passed without any
    uint64_t clock_stands_at = 0;                 // what it shows as long as it stands; 0: it goes
    uint64_t call_frame_bytes = 0;                // of calls in progress

    // Of blocks that take turns.
    bool has_turn = false;
    uint32_t turn_ops = 0;  // ordered ops that the warp may still execute in this turn
    bool spinning = false;  // its last turn did nothing but poll in vain
    uint32_t turns = 0;     // that it has had
    uint64_t settled = 0;   // `now` at its last turn
    uint64_t total = 0;     // instructions of the launch up to that turn

    // Since it last handed in: hazards by kind, op and the other places that they name.
    std::map<std::tuple<HazardKind, uint32_t, std::string>, HazardRecord> found;
    std::map<std::tuple<HazardKind, uint32_t, uint32_t>, HazardRecord *> known;  // by kind, op and other op
    std::optional<std::tuple<HazardKind, uint32_t, uint32_t>> asked;             // by repeats(), and not known
    std::string failure;                                                         // why it ended the launch
};

// A hazard and all that repeat it at the same place, by block: which of them count is known when the launch is over.
struct KnownHazard {
    HazardRecord first;
    uint64_t block = 0;                  // of the first one
    std::map<uint64_t, uint64_t> times;  // by block
};

// Results that blocks hand in, put into block order.
struct LaunchShared : LaunchState {
    GlobalMemory *memory = nullptr;
    std::atomic<uint64_t> next_block{0};
    std::atomic<bool> stopped{false};           // blocks that take turns: one has ended the launch
    std::atomic<uint64_t> first_failed{~0ull};  // linear id of the first block (in order) that ended the launch
    std::map<uint64_t, std::string> outputs;    // by block: printf output, guarded by mutex
    uint64_t output_bytes = 0;
    std::map<uint64_t, std::vector<DeviceWork>> device_work;  // by block, guarded by mutex
    std::atomic<uint64_t> device_launches{0};                 // that it has asked for
    std::map<uint64_t, std::string> errors;                   // by block: why it ended the launch
    // By kind, file, line and the places that the message names; guarded by mutex.
    std::map<std::tuple<HazardKind, std::string, uint32_t, std::string>, KnownHazard> hazards;
    std::chrono::steady_clock::time_point start;
    uint64_t blocks = 0;
    bool clusters = false;                            // they run as clusters, be it of one block
    uint64_t teams = 0;                               // clusters, or blocks where there are none
    uint64_t local_bytes = 0;                         // per thread
    std::unique_ptr<AccessLog> accesses;              // of the warp that WARPSIM_ACCESSES asks for
    std::vector<std::unique_ptr<BlockTrace>> traces;  // of the first blocks, if WARPSIM_TRACE asks for them
    uint64_t first_block = 0, last_block = 0;         // BlockContext::now at their ends
    // Conflicts between blocks; null where hazards are off or one team is all.
    std::unique_ptr<GlobalConflicts> conflicts;
    std::mutex conflicts_mutex;                                  // of what follows
    std::map<uint64_t, std::unique_ptr<GlobalShadow>> finished;  // blocks that wait for those before them
    std::vector<std::unique_ptr<GlobalShadow>> free_shadows;
    uint64_t looked_at = 0;                  // blocks, in the order in which they were begun
    bool looking = false;                    // some host thread does
    uint64_t workspace = 0;                  // of a cooperative launch: device address of its grid barrier
    std::vector<GlobalShadow::Early> early;  // of blocks that are over; guarded by mutex
};

// One host thread's share of a launch.
struct alignas(64) Worker {
    LaunchShared *launch = nullptr;
    std::vector<OpStats> stats;  // by op
    std::vector<uint64_t> runs;  // by op: how often straight-line execution began there
    uint64_t now = 0;            // warp instructions executed, the clock
    uint64_t counted = 0;        // of them added to launch->instructions
    OrderCount order;
    std::vector<std::unique_ptr<Frame>> free_frames;
    std::unique_ptr<PendingUpdates> pending;  // where the program's updates commute
};

enum class Progress : uint8_t {
    turn,      // waits for its block's turn
    sliced,    // used up its time slice
    spinning,  // only fragments that poll are left
    blocked,   // every fragment waits
    done,      // all lanes have exited
};

// scheduler/warp_loop.cpp: runs the warp for about `slice` instructions.
Progress run_warp(WarpContext &, uint64_t slice);

// scheduler/fragments.cpp
Fragment *pick_fragment(WarpContext &);  // lowest one ready, merged with those at the same place; null: none
uint32_t limit_of(const WarpContext &,
                  const Fragment &);  // op index at which another ready fragment may be met; ~0: none
Fragment &add_fragment(WarpContext &, uint32_t pc, uint32_t mask, Frame *);
void drop_empty_fragments(WarpContext &);

// machine/frames.cpp
Frame *enter_function(WarpContext &, const Op &call, uint32_t function, uint32_t lanes, Frame *parent);
void leave_function(WarpContext &, Frame *,
                    uint32_t lanes);         // copies return values, frees the frame after the last lane
void prepare_frame(WarpContext &, Frame &);  // constants and special registers
void exit_lanes(WarpContext &, Frame *, uint32_t lanes);
void release_frames(WarpContext &);

// A frame's own variables; one that calls takes 16 bytes at least.
uint64_t variable_bytes(const Frame &);
// Where the frame of a function begins that these lanes call from this one.
uint64_t stack_end(const Frame &, uint32_t lanes);

// instructions/warp/sync.cpp. True: the op ran and its lanes go on with the next op. False: they were put aside to
// wait.
bool arrive_at_warp_sync(WarpContext &, Fragment &, const Op &, uint32_t lanes);
void complete_warp_syncs(WarpContext &);  // after lanes arrived or exited

// instructions/wgmma/warpgroup.cpp: the lanes are put aside until all of their warpgroup have arrived, who then go on.
void arrive_at_warpgroup(WarpContext &, Fragment &, const Op &, uint32_t lanes);
std::string warpgroup_wait_text(const BlockContext &, const WarpContext &, const Fragment &);  // what it waits for

// instructions/barrier/barrier.cpp
void arrive_at_barrier(WarpContext &, Fragment &, const Op &, uint32_t lanes);
void complete_barriers(BlockContext &);  // after threads exited
std::string lanes_text(uint32_t lanes);  // "lanes 0-3,7"
[[noreturn]] void report_deadlock(BlockContext &);

// instructions/mbarrier/mbarrier.cpp
// True: the op ran and its lanes go on with the next op. False: they were put aside to wait.
bool wait_for_mbarrier(WarpContext &, Fragment &, const Op &, uint32_t lanes);
// No thread of the block can go on: waits for mbarriers end in vain, unless nothing came of it before. True: some did.
bool end_waits_in_vain(BlockContext &);
std::string mbarrier_wait_text(const BlockContext &, const WarpContext &, const Fragment &);  // what it lacks

// scheduler/block.cpp. A block stands for its whole cluster here, whose first it is.
void start_block(BlockContext &, Worker &, uint64_t team);
bool is_over(BlockContext &);                           // all threads have exited, or something has ended the launch
uint64_t clock_of(BlockContext &);                      // warp instructions executed
uint64_t last_of(const LaunchShared &, uint64_t team);  // linear id of its last block
// Runs warps in turn. True: the block is over. False (only if `share`): it can do no more until it has had its turn.
bool run_block(BlockContext &, bool share);
// Executes the ordered ops that its warps wait for, and those that follow soon. True: the block is over.
bool take_turn(BlockContext &);
// Where in the grid the block of that number lies, in the order of clusters. Returns its rank.
uint32_t block_place(const LaunchConfig &, uint64_t linear_id, uint32_t (&ctaid)[3]);
// The host thread that runs the block from now on.
void move_block(BlockContext &, Worker &);
void finish_block(BlockContext &, bool abandoned = false);
void abandon_block(BlockContext &);  // after a hazard ended it: what its shadow memory still has to say comes too
// Gives hazards and output to the launch; thread-safe.
void hand_in(LaunchShared &, BlockContext &);
void check_budgets(Worker &, BlockContext &);
uint64_t next_random(uint64_t &state);

// machine/frames.cpp
// Other than those of the same warp in the block before.
bool differs_between_blocks(uint8_t which);
void fill_special(const WarpContext &, const Frame &, uint8_t which, unsigned bytes, std::byte *slot);

// machine/hazards.cpp
// Reports it and ends the launch, whatever WARPSIM_HAZARDS says.
[[noreturn]] void report_and_end(WarpContext &, const Op &, HazardKind, int lane, uint64_t address,
                                 const std::string &message);
// Ends the launch for a reason that is no op's fault.
[[noreturn]] void abort_launch(BlockContext &, HazardKind, const std::string &message);
// Notes why a block ended the launch: blocks behind it need not run, and what they did does not count.
void note_failure(LaunchShared &, uint64_t block, const std::string &message);
// Adds one that two blocks make together.
void add_hazard(LaunchShared &, uint64_t block, HazardRecord);
std::string triple(const uint32_t (&)[3]);  // "(1,0,0)"
// What ends a message: " [kernel.cu:12, kernel f, block (0,0,0), warp 1, lane 2]"
std::string place_text(const Program &, uint32_t op, const HazardRecord &);
// What the blocks up to the one that ended the launch reported, in an order that does not depend on the host's threads.
std::vector<HazardRecord> collect_hazards(LaunchShared &);

inline bool is_out_of_time(const LaunchShared &launch) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - launch.start;
    return launch.options->timeout_s > 0 && elapsed.count() > launch.options->timeout_s;
}

// Ends the launch where it is out of time; the message names the line that a warp of the block has come to.
void check_time(BlockContext &);

}  // namespace warpsim
