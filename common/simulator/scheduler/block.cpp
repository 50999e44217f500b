// One thread block: its warps take turns until all threads have exited.
#include <algorithm>

#include "machine/cluster.h"
#include "machine/context.h"
#include "machine/tracking.h"
#include "scheduler/standstill.h"

namespace warpsim {

namespace {

constexpr uint64_t kSlice = 1 << 14;           // instructions of a warp's turn
constexpr uint64_t kSharedTurn = 1 << 18;      // between two turns of a block
constexpr unsigned kWantingRounds = 4;         // of a block's warps, after the first of them waits for its turn
constexpr uint32_t kMostOrdered = 256;         // ordered ops of a warp in one turn
constexpr uint64_t kTurn = 64;                 // instructions of a warp in a turn without any
constexpr unsigned kSpinningRounds = 16;       // of a block's warps, before other blocks get their turn
constexpr uint64_t kBudgetInterval = 1 << 13;  // instructions between looks at the launch's budgets
constexpr unsigned kTimeInterval = 64;         // of a block's rounds, however little is executed in them
constexpr uint64_t kLongRun = 1 << 20;         // instructions of a block before it is looked at whether it goes on
// Waits for mbarriers that end in vain so often, where nothing changes but the waiting threads' registers, do so for
// ever.
constexpr unsigned kMostVainRounds = 4096;

void start_warp(BlockContext &b, WarpContext &w, uint32_t id) {
    const Program &program = *b.program;
    const LaunchShared &launch = *b.worker->launch;
    w.id = id;
    w.agent = b.rank * b.warps + id;
    w.block = &b;
    w.owner = &b;
    w.worker = b.worker;
    w.trace = b.trace;
    w.stats = b.trace ? b.trace->stats() : b.worker->stats.data();
    const Options &options = *launch.options;
    const bool asked =
        launch.accesses && id == options.accesses_warp && std::equal(b.ctaid, b.ctaid + 3, options.accesses_block);
    w.accesses = asked ? launch.accesses.get() : nullptr;
    w.linear_thread = id * kLanes;
    const uint32_t threads = std::min(kLanes, b.threads - w.linear_thread);
    w.exist = threads == kLanes ? kAllLanes : (1u << threads) - 1;
    w.alive = w.exist;
    w.local_bytes = launch.local_bytes;
    w.local_memory.reserve(w.local_bytes * kLanes);
    w.local = w.local_memory.data();
    if (w.local) std::memset(w.local, 0, w.local_bytes * kLanes);
    w.local_shadow.reset(w.local_bytes * kLanes);
    w.undefined_local = w.local_bytes && b.definedness ? &w.local_shadow : nullptr;
    for (unsigned lane = 0; w.undefined_local && lane < kLanes; ++lane)
        w.undefined_local->undefine(lane * w.local_bytes, program.functions[0].local_bytes);
    w.tracking_began = false;
    w.carry = 0;
    w.wants_turn = false;
    w.ldmatrix_in_a_row = 0;
    w.params = const_cast<std::byte *>(launch.config->parameters);
    w.kernel_frame.function = &program.functions[0];
    w.kernel_frame.lanes = w.exist;
    prepare_frame(w, w.kernel_frame);
    use_frame(w, w.kernel_frame);
    w.count = 0;
    add_fragment(w, program.functions[0].entry, w.exist, &w.kernel_frame);
}

// Ends the launch because a budget is used up; the message names the line that a warp of this block has come to.
[[noreturn]] void end_launch(BlockContext &block, const std::string &message) {
    BlockContext *const first = &block;
    for (BlockContext *b : team_of(first)) {
        for (const auto &w : b->contexts) {
            if (!w->count) continue;
            const Fragment &f = w->fragments[0];
            w->regs = f.frame->regs;
            w->exec = f.mask;
            report_hazard(*w, block.program->ops[f.pc], HazardKind::budget, -1, 0, message);
        }
    }
    abort_launch(block, HazardKind::budget, message);
}

std::string instructions_used_up(const Options &options) {
    return "the launch used up its budget of " + std::to_string(options.max_instructions) +
           " warp instructions (WARPSIM_MAX_INSTRUCTIONS)";
}

void start_one(BlockContext &b, Worker &worker, uint64_t linear_id);

void follow_global_memory(BlockContext &first, LaunchShared &, uint64_t team);
void delay_stores(BlockContext &first, LaunchShared &, uint64_t team);

}  // namespace

uint32_t block_place(const LaunchConfig &config, uint64_t linear_id, uint32_t (&ctaid)[3]) {
    const uint32_t *c = config.cluster;
    const uint64_t cluster = linear_id / config.cluster_blocks();
    const uint32_t x = config.grid[0] / c[0], y = config.grid[1] / c[1];
    const uint32_t rank = uint32_t(linear_id % config.cluster_blocks());
    ctaid[0] = uint32_t(cluster % x) * c[0] + rank % c[0];
    ctaid[1] = uint32_t(cluster / x % y) * c[1] + rank / c[0] % c[1];
    ctaid[2] = uint32_t(cluster / x / y) * c[2] + rank / c[0] / c[1];
    return rank;
}

bool is_over(BlockContext &first) {
    BlockContext *const block = &first;
    bool over = true;
    for (BlockContext *b : team_of(block)) {
        if (!b->failure.empty()) return true;
        over = over && !b->alive;
    }
    return over;
}

uint64_t clock_of(BlockContext &first) {
    BlockContext *const block = &first;
    uint64_t sum = 0;
    for (BlockContext *b : team_of(block)) sum += b->now;
    return sum;
}

uint64_t last_of(const LaunchShared &launch, uint64_t team) {
    const uint64_t each = launch.blocks / launch.teams;
    return team * each + each - 1;
}

uint64_t next_random(uint64_t &state) {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void start_block(BlockContext &b, Worker &worker, uint64_t team) {
    LaunchShared &launch = *worker.launch;
    const uint64_t each = launch.blocks / launch.teams;
    b.cluster = nullptr;
    start_one(b, worker, team * each);
    if (!launch.clusters) {
        follow_global_memory(b, launch, team);
        return delay_stores(b, launch, team);
    }
    if (!b.own_cluster) b.own_cluster = std::make_shared<ClusterContext>();
    ClusterContext &cluster = *b.own_cluster;
    cluster.blocks.assign(1, &b);
    while (cluster.peers.size() + 1 < each) cluster.peers.push_back(std::make_unique<BlockContext>());
    for (uint64_t rank = 1; rank < each; ++rank) {
        BlockContext &peer = *cluster.peers[rank - 1];
        start_one(peer, worker, team * each + rank);
        if (peer.definedness) peer.definedness = &b.defined;
        cluster.blocks.push_back(&peer);
    }
    for (BlockContext *block : cluster.blocks) block->cluster = &cluster;
    cluster.start(b.warps);
    follow_global_memory(b, launch, team);
    delay_stores(b, launch, team);
}

namespace {

// From now on the clocks and the shadow of global memory know of all that the block, or its cluster, does.
void follow_global_memory(BlockContext &first, LaunchShared &launch, uint64_t team) {
    BlockContext *const block = &first;
    first.global_shadow = nullptr;
    if (!first.shadow) return;
    if (!first.own_global_shadow && launch.conflicts) {
        const std::lock_guard<std::mutex> lock(launch.conflicts_mutex);
        if (!launch.free_shadows.empty()) {
            first.own_global_shadow = std::move(launch.free_shadows.back());
            launch.free_shadows.pop_back();
        }
    }
    if (!first.own_global_shadow) first.own_global_shadow = std::make_unique<GlobalShadow>();
    for (BlockContext *b : team_of(block)) {
        b->shadow->bind(b->threads);
        b->global_shadow = first.own_global_shadow.get();
    }
    first.global_shadow->start(first.shadow->clocks(), launch.config->first_team + team, first.warps, *launch.program);
    if (launch.config->overtakes) first.global_shadow->watch_early();
}

// By another schedule than the default one, other blocks see the team's plain stores late.
void delay_stores(BlockContext &first, LaunchShared &launch, uint64_t team) {
    const uint64_t seed = launch.options->schedule_seed;
    if (!seed || !launch.program->communicates) return;
    if (!first.own_late_stores) first.own_late_stores = std::make_unique<LateStores>();
    first.own_late_stores->start(seed * 0x9e3779b97f4a7c15ull + team + 1);
    BlockContext *const block = &first;
    for (BlockContext *b : team_of(block)) b->late_stores = first.own_late_stores.get();
}

void start_one(BlockContext &b, Worker &worker, uint64_t linear_id) {
    LaunchShared &launch = *worker.launch;
    const LaunchConfig &config = *launch.config;
    const Program &program = *launch.program;
    b.worker = &worker;
    b.program = launch.program;
    b.global = launch.memory;
    b.hazards = &b;
    b.pending = worker.pending.get();
    b.linear_id = uint32_t(linear_id);
    b.rank = block_place(config, linear_id, b.ctaid);
    for (unsigned i = 0; i < 3; ++i) {
        b.ntid[i] = config.block[i];
        b.nctaid[i] = config.grid[i];
    }
    b.threads = b.alive = b.ntid[0] * b.ntid[1] * b.ntid[2];
    b.warps = (b.threads + kLanes - 1) / kLanes;
    b.shared_bytes =
        program.reserved_shared +
        (config.dynamic_shared ? program.dynamic_shared_offset + config.dynamic_shared : program.static_shared);
    b.shared_rooms.assign(1, {0, b.shared_bytes});
    for (const Program::SharedVariable &v : program.shared_variables)
        b.shared_rooms.push_back({v.begin, v.bytes ? v.bytes : std::max(b.shared_bytes, v.begin) - v.begin});
    b.shared_memory.reserve(b.shared_bytes + 64);
    b.shared = b.shared_memory.data();
    std::memset(b.shared, 0xff, b.shared_bytes);  // NaN, and an index that is out of bounds
    b.shadow = nullptr;
    if (launch.options->hazards) {
        if (b.shadow_memory) {
            b.shadow_memory->reset(b.shared_bytes, program.shadow_granule, b.warps);
        } else {
            b.shadow_memory = std::make_unique<SharedShadow>(b.shared_bytes, program.shadow_granule, b.warps);
        }
        b.shadow = b.shadow_memory.get();
        b.shadow->exempt(program.reserved_shared);
    }
    b.defined.start_block(launch.options->distrust_memory);
    b.definedness = launch.options->hazards ? &b.defined : nullptr;
    b.late_stores = nullptr;
    b.trace = nullptr;
    if (linear_id < launch.traces.size()) {
        launch.traces[linear_id] = std::make_unique<BlockTrace>(program, b.warps, b.ctaid);
        b.trace = launch.traces[linear_id].get();
        b.trace->count_into(worker.stats);
    }
    b.arriving.start_block(b.warps);
    b.vain_changes = ~0ull;
    b.completions = &b.arriving;
    b.output.clear();
    b.device_runtime = {};
    b.next_warp = 0;
    b.now = b.settled = b.total = b.call_frame_bytes = b.clock_lead = b.clock_stands_at = 0;
    b.has_turn = b.spinning = false;
    b.turns = 0;
    b.found.clear();
    b.known.clear();
    b.failure.clear();
    b.random =
        launch.options->schedule_seed ? launch.options->schedule_seed * 0x2545f4914f6cdd1dull + linear_id + 1 : 0;
    for (Barrier &barrier : b.barriers) barrier.active = false;
    while (b.contexts.size() < b.warps) b.contexts.push_back(std::make_unique<WarpContext>());
    b.contexts.resize(b.warps);
    for (uint32_t i = 0; i < b.warps; ++i) start_warp(b, *b.contexts[i], i);
}

}  // namespace

void check_budgets(Worker &worker, BlockContext &block) {
    LaunchShared &launch = *worker.launch;
    const Options &options = *launch.options;
    const bool ordered = launch.program->communicates;
    // What other blocks have come to is not chance only up to the block's last turn.
    if (ordered && options.max_instructions &&
        block.total + (clock_of(block) - block.settled) > options.max_instructions) {
        end_launch(block, instructions_used_up(options));
    }
    if (worker.now - worker.counted < kBudgetInterval && worker.counted) return;
    uint64_t total = 0;
    if (!ordered) {
        total = worker.now - worker.counted;
        total += launch.instructions.fetch_add(total, std::memory_order_relaxed);
    }
    worker.counted = worker.now;
    if (launch.first_failed.load(std::memory_order_relaxed) < block.linear_id) throw LaunchAborted{};
    if (launch.stopped.load(std::memory_order_relaxed)) throw LaunchAborted{};
    if (!ordered && options.max_instructions && total > options.max_instructions) {
        end_launch(block, instructions_used_up(options));
    }
    check_time(block);
}

void check_time(BlockContext &block) {
    LaunchShared &launch = *block.worker->launch;
    if (!is_out_of_time(launch)) return;
    if (!launch.program->communicates) launch.stopped = true;  // no other block need begin
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", launch.options->timeout_s);
    end_launch(block,
               std::string("the launch ran longer than its time limit of ") + seconds + " s (WARPSIM_TIMEOUT_S)");
}

namespace {

// No warp of the block can run. True: some may now, for waits for mbarriers have ended in vain.
bool can_go_on(BlockContext &b) {
    if (end_waits_in_vain(b) && b.vain_rounds % kVainRounds != 0) return true;
    Standstill standstill;
    Verdict verdict = standstill.add(b);
    // Nothing moves but the clock, so time may pass: who gives up after some of it does so now.
    if (verdict == Verdict::reads_clock) verdict = standstill.add_later(b);
    if (verdict == Verdict::still && !standstill.rounds().empty()) report_standstill(b, standstill);
    if (verdict == Verdict::goes_on) b.vain_rounds = 0;
    return verdict == Verdict::goes_on || (verdict == Verdict::uncertain && b.vain_rounds < kMostVainRounds);
}

// Ends the launch if the block, which has run for long, goes round for ever.
void check_long_run(BlockContext &b) {
    Standstill standstill, later;
    const Verdict verdict = standstill.add(b);
    if (verdict == Verdict::still) report_standstill(b, standstill);
    if (verdict != Verdict::reads_clock || standstill.add_now(b) != Verdict::still) return;
    // Nothing but the clock moves: who gives up after some time does so now.
    if (later.add_later(b) == Verdict::still) report_standstill(b, later);
}

}  // namespace

bool run_block(BlockContext &b, bool share) {
    Worker &worker = *b.worker;
    const uint64_t begin = clock_of(b);
    const uint64_t most = worker.launch->options->max_instructions;
    BlockContext *const first = &b;
    const Team team = team_of(first);
    std::vector<WarpContext *> order;
    order.reserve(team.count * b.warps);
    for (BlockContext *block : team)
        for (const auto &w : block->contexts) order.push_back(w.get());
    uint64_t long_run = kLongRun;
    unsigned rounds = 0;
    for (unsigned spinning_rounds = 0, wanting_rounds = 0;;) {
        if (++rounds % kTimeInterval == 0) check_time(b);
        if (b.random) {
            for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_random(b.random) % i]);
        }
        bool moved = false, spun = false, wanting = false;
        for (WarpContext *const context : order) {
            WarpContext &w = *context;
            uint64_t &now = w.owner->now;
            wanting = wanting || w.wants_turn;
            if (!w.count || w.wants_turn) continue;
            uint64_t slice = b.random ? 16 + next_random(b.random) % 1024 : kSlice;
            if (most) slice = std::min<uint64_t>(slice, 1024);
            const uint64_t before = now;
            const Progress progress = run_warp(w, slice);
            worker.now += now - before;
            w.wants_turn = progress == Progress::turn;
            wanting = wanting || w.wants_turn;
            moved = moved || progress == Progress::done || progress == Progress::sliced ||
                    (progress == Progress::blocked && now != before);
            spun = spun || progress == Progress::spinning;
            check_budgets(worker, b);
        }
        if (is_over(b)) return true;
        if (!moved && !spun && !wanting) {
            if (!can_go_on(b)) report_deadlock(b);
            continue;
        }
        if (!share && clock_of(b) - begin > long_run) {
            check_long_run(b);
            long_run *= 2;
        }
        spinning_rounds = moved ? 0 : spinning_rounds + 1;
        wanting_rounds += wanting;
        if (!share) continue;
        if (wanting && (!moved || wanting_rounds > kWantingRounds)) return false;
        if (spinning_rounds >= kSpinningRounds || clock_of(b) - begin > kSharedTurn) return false;
    }
}

bool take_turn(BlockContext &b) {
    BlockContext *const first = &b;
    const Team team = team_of(first);
    std::vector<WarpContext *> order;
    for (BlockContext *block : team) {
        block->has_turn = true;
        for (const auto &w : block->contexts)
            if (w->wants_turn) order.push_back(w.get());
    }
    if (b.random) {
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_random(b.random) % i]);
    }
    ++b.turns;
    b.spinning = true;  // also where none of its warps wants the turn: they spin, or run for very long
    for (WarpContext *const context : order) {
        WarpContext &w = *context;
        w.wants_turn = false;
        w.owner->turn_ops = b.random ? 1 + uint32_t(next_random(b.random) % 8) : kMostOrdered;
        w.last_poll = {};
        const uint64_t before = w.owner->now;
        const Progress progress = run_warp(w, kTurn);
        b.worker->now += w.owner->now - before;
        b.spinning = b.spinning && progress == Progress::spinning;
        check_budgets(*b.worker, b);
    }
    for (BlockContext *block : team) block->has_turn = false;
    return is_over(b);
}

void move_block(BlockContext &b, Worker &worker) {
    if (b.worker == &worker) return;
    BlockContext *const first = &b;
    for (BlockContext *block : team_of(first)) {
        block->worker = &worker;
        if (block->trace) block->trace->count_into(worker.stats);
        for (auto &w : block->contexts) {
            w->worker = &worker;
            if (!w->trace) w->stats = worker.stats.data();
        }
    }
}

void abandon_block(BlockContext &b) {
    try {
        finish_block(b, true);
    } catch (const LaunchAborted &) {
    }
    BlockContext *const first = &b;
    for (BlockContext *block : team_of(first)) {
        block->has_turn = false;
        for (auto &w : block->contexts) release_frames(*w);
    }
}

void finish_block(BlockContext &b, bool abandoned) {
    LaunchShared &launch = *b.worker->launch;
    if (b.late_stores && abandoned) b.late_stores->show_all();
    BlockContext *const first = &b;
    for (BlockContext *block : team_of(first)) {
        if (block->linear_id == 0) launch.first_block = block->now;
        if (block->linear_id == launch.blocks - 1) launch.last_block = block->now;
        if (!abandoned) check_copies_left(*block);
        finish_stores(*block);
        if (block->trace) block->trace->finish();
    }
    if (b.global_shadow && !abandoned) b.global_shadow->settle_doubts(true);
    if (b.global_shadow && launch.config->overtakes) {
        const std::lock_guard<std::mutex> lock(launch.mutex);
        const std::vector<GlobalShadow::Early> &early = b.global_shadow->early();
        launch.early.insert(launch.early.end(), early.begin(), early.end());
    }
    if (b.definedness) b.definedness->finish();
}

}  // namespace warpsim
