// Runs one grid, on host threads that wait between launches: a short launch does not pay for starting any.
#include <pthread.h>
#include <signal.h>
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/names.h"
#include "device_runtime/device_runtime.h"
#include "machine/context.h"
#include "machine/global_hazards.h"
#include "machine/launch.h"
#include "memory/global_memory.h"
#include "scheduler/turns.h"

namespace warpsim {

namespace {

// Never destroyed: its threads wait until the process ends.
class HostThreads {
  public:
    void run(unsigned count, const std::function<void(unsigned)> &job) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (threads_ + 1 < count) start();
            job_ = &job;
            wanted_ = count - 1;
            taken_ = 0;
            running_ = count - 1;
        }
        begin_.notify_all();
        job(0);
        std::unique_lock<std::mutex> lock(mutex_);
        end_.wait(lock, [&] { return !running_; });
        job_ = nullptr;
    }

  private:
    void start() {
        ++threads_;
        // The program's signals are for its own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread([this] { work(); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            begin_.wait(lock, [&] { return job_ && taken_ < wanted_; });
            const unsigned number = ++taken_;
            const auto &job = *job_;
            lock.unlock();
            job(number);
            lock.lock();
            if (!--running_) end_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const std::function<void(unsigned)> *job_ = nullptr;
    unsigned threads_ = 0, wanted_ = 0, taken_ = 0, running_ = 0;
};

// Runs job(0) on this thread and job(1) ... job(count - 1) on others, and returns when all are over. The job must not
// throw. One caller at a time.
void run_on_threads(unsigned count, const std::function<void(unsigned)> &job) {
    if (count <= 1) return job(0);
    static HostThreads &threads = *new HostThreads;
    threads.run(count, job);
}

constexpr uint64_t kMostStackLimit = 1 << 20;
constexpr uint64_t kWorkspaceBytes = 256;
constexpr uint64_t kMostBlockBytes = 4ull << 30;  // host memory for all blocks that run at once on a host thread

void prepare(Worker &worker, LaunchShared &launch) {
    worker.launch = &launch;
    worker.stats.assign(launch.program->ops.size(), OpStats{});
    worker.runs.assign(launch.program->ops.size(), 0);
    if (launch.program->updates_commute) worker.pending = std::make_unique<PendingUpdates>();
}

void run_independent(Worker &worker) {
    LaunchShared &launch = *worker.launch;
    BlockContext block;
    const bool last_first = launch.options->schedule_seed;
    for (uint64_t n; (n = launch.next_block.fetch_add(1)) < launch.teams;) {
        const uint64_t id = last_first ? launch.teams - 1 - n : n;
        if (last_of(launch, id) > launch.first_failed.load() || launch.stopped) {
            finished_block(launch, n, nullptr);
            continue;
        }
        std::unique_ptr<GlobalShadow> touched;
        try {
            start_block(block, worker, id);
            run_block(block, false);
            finish_block(block);
            if (launch.conflicts) touched = std::move(block.own_global_shadow);
        } catch (const LaunchAborted &) {
            abandon_block(block);
        } catch (const std::exception &e) {
            note_failure(launch, last_of(launch, id), std::string("the simulator failed: ") + e.what());
        }
        hand_in(launch, block);
        finished_block(launch, n, std::move(touched));
    }
    if (worker.pending) worker.pending->flush();
}

// What run_warp counted by runs of straight-line ops, as a count for each op.
void settle_counts(const Program &program, Worker &worker) {
    for (size_t start = 0; start < worker.runs.size(); ++start) {
        const uint64_t count = worker.runs[start];
        if (!count) continue;
        size_t i = start;
        for (; program.ops[i].flow == Flow::straight || program.ops[i].flow == Flow::guarded; ++i) {
            if (program.ops[i].flow == Flow::straight) worker.stats[i].issued += count;
        }
        if (program.ops[i].guard == kNoSlot || program.ops[i].flow == Flow::branch) worker.stats[i].issued += count;
    }
}

std::vector<OpStats> total_stats(const Program &program, std::vector<Worker> &workers) {
    std::vector<OpStats> totals(program.ops.size());
    for (Worker &worker : workers) {
        settle_counts(program, worker);
        for (size_t i = 0; i < totals.size(); ++i) {
            const OpStats &s = worker.stats[i];
            OpStats &t = totals[i];
            t.issued += s.issued;
            t.shared_wavefronts += s.shared_wavefronts;
            t.shared_ideal += s.shared_ideal;
            t.global_sectors += s.global_sectors;
            t.global_ideal += s.global_ideal;
            t.global_bytes += s.global_bytes;
            t.divergent += s.divergent;
            t.bulk_copies += s.bulk_copies;
            t.bulk_bytes += s.bulk_bytes;
            t.tensor_sectors += s.tensor_sectors;
            t.waits += s.waits;
            t.waited += s.waited;
        }
    }
    for (size_t i = 0; i < totals.size(); ++i) {
        if (!program.debug[i].counted) totals[i].issued = 0;
    }
    return totals;
}

// Host memory that one block in execution takes.
uint64_t bytes_of_block(const Program &program, const LaunchConfig &config, uint64_t local_bytes) {
    const uint64_t threads = uint64_t(config.block[0]) * config.block[1] * config.block[2];
    const uint64_t warps = (threads + kLanes - 1) / kLanes;
    return warps * (program.functions[0].frame_bytes + local_bytes * kLanes) + program.dynamic_shared_offset +
           config.dynamic_shared + program.reserved_shared;
}

// Blocks whose local memory is free on the device, which is what bounds how many run at once.
uint64_t blocks_that_fit(const GlobalMemory &memory, const LaunchConfig &config, uint64_t local_bytes) {
    const uint64_t threads = uint64_t(config.block[0]) * config.block[1] * config.block[2];
    return (memory.limit() - memory.used()) / std::max<uint64_t>(1, threads * local_bytes);
}

unsigned worker_count(const Options &options, uint64_t blocks) {
    unsigned count = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    return unsigned(std::min<uint64_t>(count, blocks));
}

}  // namespace

struct Execution::Parts {
    Program &program;
    GlobalMemory &memory;
    const LaunchConfig config;
    const Options &options;
    LaunchShared launch{};
    std::vector<Worker> workers{};
    std::optional<Turns> turns{};
    LaunchReport report{};
    std::chrono::steady_clock::time_point paused{};
    bool began = false;

    void prepare_shared();
    // False: it cannot begin, and report.error says why.
    bool begin();
    uint64_t stack_bytes() const;
    void fill_report();
};

uint64_t Execution::Parts::stack_bytes() const {
    return program.stack_bytes + (program.recursive ? std::min<uint64_t>(config.stack_limit, kMostStackLimit) : 0);
}

void Execution::Parts::prepare_shared() {
    launch.program = &program;
    launch.config = &config;
    launch.options = &options;
    launch.memory = &memory;
    if (options.accesses && !options.report_path.empty()) {
        launch.accesses = std::make_unique<AccessLog>(program, options.accesses);
    }
    launch.start = std::chrono::steady_clock::now();
    launch.blocks = uint64_t(config.grid[0]) * config.grid[1] * config.grid[2];
    launch.clusters = config.cluster_blocks() > 1 || program.uses_clusters;
    if (!options.trace_path.empty() && !launch.clusters)
        launch.traces.resize(std::min<uint64_t>(options.trace_blocks, launch.blocks));
    launch.teams = launch.blocks / config.cluster_blocks();
    if (options.hazards && (launch.teams > 1 || config.collects))
        launch.conflicts = std::make_unique<GlobalConflicts>(program.communicates);
    launch.local_bytes = (std::max<uint64_t>(stack_bytes(), program.local_bytes) + 15) / 16 * 16;
}

bool Execution::Parts::begin() {
    began = true;
    report.kernel = demangle(program.name);
    std::copy(config.grid, config.grid + 3, report.grid);
    std::copy(config.block, config.block + 3, report.block);
    report.shared_bytes =
        config.dynamic_shared ? program.dynamic_shared_offset + config.dynamic_shared : program.static_shared;
    prepare_shared();
    const uint64_t fit = blocks_that_fit(memory, config, launch.local_bytes);
    if (fit < config.cluster_blocks()) {
        report.error = "out of device memory: each thread of a block needs " + std::to_string(launch.local_bytes) +
                       " bytes of local memory, and " + std::to_string(memory.limit() - memory.used()) + " of " +
                       std::to_string(memory.limit()) + " are free for all (WARPSIM_MAX_MEMORY sets the limit)";
        return false;
    }
    const uint64_t block_bytes = bytes_of_block(program, config, launch.local_bytes);
    if (block_bytes > kMostBlockBytes) {
        report.error =
            "out of memory: a block needs " + std::to_string(block_bytes >> 20) + " MiB for its threads' local memory";
        return false;
    }
    if (config.cooperative) {
        launch.workspace = memory.allocate(kWorkspaceBytes, MemoryKind::module_global);
        if (!launch.workspace) {
            report.error = "out of device memory for the grid barrier of a cooperative launch";
            return false;
        }
        std::memset(memory.find(launch.workspace)->host, 0, kWorkspaceBytes);
    }
    if (!prepare_heap(program, memory)) {
        report.error = "out of device memory for the heap of malloc in kernels";
        return false;
    }
    const uint64_t each = config.cluster_blocks();
    workers = std::vector<Worker>(std::min<uint64_t>(worker_count(options, launch.teams), fit / each));
    for (Worker &worker : workers) prepare(worker, launch);
    const uint64_t resident = std::min(uint64_t(config.multiprocessors) * config.resident_blocks, fit) / each;
    const uint64_t most = std::max<uint64_t>(1, kMostBlockBytes / std::max<uint64_t>(1, block_bytes * each));
    turns.emplace(launch, std::clamp<uint64_t>(resident, 1, most));
    return true;
}

void Execution::Parts::fill_report() {
    if (config.cooperative) memory.release(launch.workspace);
    for (auto &[block, text] : launch.outputs) {
        if (block <= launch.first_failed.load() && config.print) config.print(text);
    }
    const uint32_t *at = options.accesses_block, *of = config.cluster;
    const uint64_t accessed =
        at[0] / of[0] + config.grid[0] / of[0] * (at[1] / of[1] + uint64_t(config.grid[1] / of[1]) * (at[2] / of[2]));
    if (launch.accesses && last_of(launch, accessed) <= launch.first_failed.load()) {
        report.accesses = launch.accesses->take();
        report.boxes = launch.accesses->take_boxes();
    }
    for (const auto &trace : launch.traces)
        if (trace) report.traced.push_back(trace->take());
    report.traced_ops = traced_ops(program, report.traced);
    std::copy(options.accesses_block, options.accesses_block + 3, report.accessed_block);
    report.accessed_warp = options.accesses_warp;
    for (HazardRecord &record : collect_hazards(launch))
        (record.note ? report.notes : report.hazards).push_back(std::move(record));
    if (report.error.empty() && !launch.errors.empty()) report.error = launch.errors.begin()->second;
    // How far other blocks had come when one ended the launch is chance: nothing is counted then.
    summarize(program, report.error.empty() ? total_stats(program, workers) : std::vector<OpStats>{}, report);
    if (report.error.empty()) {
        for (const Worker &worker : workers) report.order.add(worker.order);
        report.first_block = launch.first_block;
        report.last_block = launch.last_block;
    }
    if (report.error.empty() && config.launched) {
        for (auto &[block, asked] : launch.device_work) {
            for (DeviceWork &work : asked) config.launched(std::move(work));
        }
    }
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - launch.start).count();
}

Execution::Execution(Program &program, GlobalMemory &memory, LaunchConfig config, const Options &options)
    : parts_(new Parts{.program = program, .memory = memory, .config = std::move(config), .options = options}) {}

Execution::~Execution() = default;

Execution::State Execution::run(bool may_pause) {
    Parts &p = *parts_;
    if (!p.began) {
        if (!p.begin()) return State::over;
    } else {
        p.launch.start += std::chrono::steady_clock::now() - p.paused;  // what others took is not this one's
        p.turns->resume();
    }
    p.turns->let_pause(may_pause);
    try {
        run_on_threads(unsigned(p.workers.size()), [&](unsigned i) {
            if (p.program.communicates) {
                p.turns->work(p.workers[i]);
            } else {
                run_independent(p.workers[i]);
            }
        });
    } catch (const std::exception &e) {
        p.report.error = std::string("the simulator failed: ") + e.what();
    }
    if (p.report.error.empty() && p.turns->has_paused()) {
        p.paused = std::chrono::steady_clock::now();
        return p.turns->is_undecided() ? State::undecided : State::still;
    }
    p.turns.reset();
    p.fill_report();
    return State::over;
}

bool Execution::may_go_on() const {
    return parts_->turns->may_go_on();
}

LaunchReport Execution::report() {
    return std::move(parts_->report);
}

Footprint Execution::touched() {
    Parts &p = *parts_;
    Footprint touched;
    if (!p.config.collects || !p.launch.conflicts) return touched;
    const auto &heap = p.program.module->heap;
    // Something was released to other launches, or learnt from them.
    const auto any = [](const ReleasedAt *released) { return released && !released->empty(); };
    const bool detailed =
        p.program.communicates && (any(p.config.released_on_device) || any(p.config.released_to_system));
    touched.add_all(*p.launch.conflicts, p.program, detailed, heap ? heap->base() : 0, heap ? DeviceHeap::kBytes : 0);
    touched.finish();
    return touched;
}

Footprint Execution::touched_before() {
    Parts &p = *parts_;
    Footprint touched;
    for (const GlobalShadow::Early &early : p.launch.early)
        touched.add_op(p.program, early.begin, early.end, early.flags, early.op);
    touched.finish();
    return touched;
}

LaunchReport execute(Program &program, GlobalMemory &memory, const LaunchConfig &config, const Options &options) {
    Execution execution(program, memory, config, options);
    execution.run(false);
    return execution.report();
}

}  // namespace warpsim
