#include "runtime/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/capture.h"
#include "runtime/per_thread.h"
#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

// A queue this long makes room before it takes more, as a GPU's does.
constexpr size_t kMostQueued = 1024;

constexpr uint32_t kBelow = 0, kHost = 1, kAbove = 2;  // ranks, where they are not random

// With random ranks each operation and each call draws a new one with a chance of 1 in so many.
constexpr uint64_t kRedraw = 4;

// So often does a wait look, 10 ms apart, whether another host thread queues what a launch that stands still waits for.
constexpr unsigned kLooks = 100;
constexpr std::chrono::milliseconds kBetweenLooks{10};

// Under the runtime's lock: the stream whose launch has gone on for long in vain, and was resumed last because nothing
// else could run. Where there are several they take turns, for each may wait for any other.
uint64_t resumed_last = 0;

std::string name_of(const Stream &stream, size_t devices) {
    const std::string name = stream.legacy ? "the default stream" : "stream " + std::to_string(stream.number());
    return devices > 1 ? name + " of device " + std::to_string(stream.device) : name;
}

// All operations of the two are ordered, whatever the program does.
bool always_ordered(const Stream &a, const Stream &b) {
    return &a == &b || (a.device == b.device && a.blocking() && b.blocking() && (a.legacy || b.legacy));
}

// Of two ready streams, which one goes first.
bool precedes(const Stream *a, const Stream *b) {
    return a->rank != b->rank ? a->rank > b->rank : a->queue.front().order < b->queue.front().order;
}

}  // namespace

bool Ticket::done() const {
    return !stream || stream->completed >= sequence;
}

Scheduler::Scheduler(std::mutex &lock, uint64_t seed, int64_t last_stream, unsigned devices)
    : lock_(lock),
      random_(seed),
      shuffle_(seed != 0),
      last_stream_(last_stream),
      host_rank_(shuffle_ ? draw() : kHost),
      legacy_(devices) {
    reset();
}

void Scheduler::reset() {
    for (const auto &stream : streams_) stream->destroyed = true;
    streams_.clear();
    for (unsigned device = 0; device < legacy_.size(); ++device) legacy_[device] = add(0, 0, device, true);
    host_clock_ = {};
    pause_.reset();
}

void Scheduler::reset_device(unsigned device) {
    for (const auto &stream : streams_) stream->destroyed = stream->destroyed || stream->device == device;
    std::erase_if(streams_, [&](const auto &stream) { return stream->device == device; });
    legacy_[device] = add(0, 0, device, true);
}

std::shared_ptr<Stream> Scheduler::create(unsigned flags, int priority) {
    return add(flags, priority, current_device(), false);
}

std::shared_ptr<Stream> Scheduler::add(unsigned flags, int priority, unsigned device, bool legacy) {
    auto stream = std::make_shared<Stream>();
    stream->id = next_id_++;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = legacy;
    stream->device = device;
    stream->rank = shuffle_ ? draw() : last_stream_ < 0 || stream->number() == last_stream_ ? kBelow : kAbove;
    streams_.push_back(stream);
    return stream;
}

std::shared_ptr<Stream> Scheduler::resolve(cudaStream_t handle) {
    if (!handle) handle = this_thread().per_thread_stream ? cudaStreamPerThread : cudaStreamLegacy;
    if (handle == cudaStreamLegacy) return legacy_[current_device()];
    if (handle == cudaStreamPerThread) {
        std::shared_ptr<Stream> &own = this_thread().default_streams[current_device()];
        if (!own || own->destroyed) own = create(0, 0);
        return own;
    }
    for (const auto &stream : streams_) {
        if (stream->handle() == handle && !stream->destroyed && !stream->legacy) return stream;
    }
    throw Failure{cudaErrorInvalidResourceHandle};
}

void Scheduler::destroy(const std::shared_ptr<Stream> &stream) {
    stream->destroyed = true;
    forget_finished();
}

void Scheduler::forget_finished() {
    std::erase_if(streams_, [](const auto &stream) { return stream->destroyed && stream->queue.empty(); });
}

Ticket Scheduler::enqueue(const std::shared_ptr<Stream> &stream, Operation operation) {
    refuse_in_host_function();
    if (stream->capture) {
        if (stream->capture_status == cudaStreamCaptureStatusInvalidated)
            throw Failure{cudaErrorStreamCaptureInvalidated};
        Graph &graph = *stream->capture;
        Graph::Node *node = graph.add(std::move(operation));
        node->after = std::exchange(stream->tails, {node});
        return {};
    }
    if (stream->legacy) refuse_implicit(*Runtime::get(), *stream);
    if (stream->queue.size() >= kMostQueued) wait({stream, stream->queued - kMostQueued / 2});
    // The legacy default stream and the blocking streams of a device wait for each other.
    const std::shared_ptr<Stream> &legacy = legacy_[stream->device];
    if (stream->legacy) {
        for (const auto &other : streams_) {
            if (other != stream && other->device == stream->device && other->blocking() && !other->queue.empty())
                operation.after.push_back(last(other));
        }
    } else if (stream->blocking() && !legacy->queue.empty()) {
        operation.after.push_back(last(legacy));
    }
    if (!operation.mark.before) {
        operation.mark = {stream->lane(), stream->queued + 1, clock_of(*stream, operation)};
        auto clock = std::make_shared<Clock>(*operation.mark.before);
        clock->advance(operation.mark.lane, operation.mark.step);
        stream->clock = std::move(clock);
    }
    operation.overtakes = operation.overtakes && stream->last_launch;
    if (operation.overtakes) operation.overtaken = *stream->last_launch;
    stream->last_launch.reset();
    if (operation.is_launch) stream->last_launch = operation.mark;
    operation.order = next_order_++;
    operation.queued_by = Runtime::get()->reports.host.current();
    stream->queue.push_back(std::move(operation));
    Runtime::get()->idle.watch();
    finished_.notify_all();  // who waits for a launch that stands still may go on with this
    return {stream, ++stream->queued, stream->clock};
}

// What the stream's next operation comes after.
SharedClock Scheduler::clock_of(const Stream &stream, const Operation &operation) const {
    auto clock = std::make_shared<Clock>(host_clock_);
    clock->join(stream.clock);
    if (stream.legacy) {
        for (const auto &other : streams_)
            if (other->device == stream.device && other->blocking()) clock->join(other->clock);
    } else if (stream.blocking()) {
        clock->join(legacy_[stream.device]->clock);
    }
    for (const Ticket &before : operation.after) clock->join(before.clock);
    return clock;
}

SharedClock Scheduler::begin_graph(const std::shared_ptr<Stream> &stream) {
    return clock_of(*stream, {});
}

uint32_t Scheduler::branch(Stream &stream, size_t number) {
    while (stream.branches.size() <= number) stream.branches.push_back(next_branch_++);
    return stream.branches[number];
}

void Scheduler::end_graph(const std::shared_ptr<Stream> &stream, const Clock &end) {
    auto clock = std::make_shared<Clock>(end);
    clock->join(stream->clock);
    stream->clock = std::move(clock);
    stream->last_launch.reset();
}

// Whether the stream's first operation can run now.
bool Scheduler::is_ready(const Stream &stream) const {
    if (stream.queue.empty() || stream.busy) return false;
    if (stream.paused) {
        // What has only gone on for long comes again once another operation has come.
        return stream.paused->undecided ? stream.paused_at != steps_ : stream.paused->may_go_on();
    }
    const std::vector<Ticket> &after = stream.queue.front().after;
    return std::all_of(after.begin(), after.end(), [](const Ticket &before) { return before.done(); });
}

// Whether something that is done or queued, or can still be queued, is not ordered with the operation, which is to run
// now.
bool Scheduler::collects(const Stream &stream, const Operation &operation) const {
    const Runtime &runtime = *Runtime::get();
    if (!runtime.options.hazards) return false;
    if (shuffle_ || last_stream_ >= 0 || operation.overtakes) return true;
    if (stream.queue.size() > 1 && stream.queue[1].overtakes) return true;
    if (runtime.order.has_unordered(operation.mark)) return true;
    // Where the host waits for it, all that it queues from then on is ordered behind it.
    const bool may_meet_later = !host_waits_ || host_threads() > 1;
    for (const auto &other : streams_) {
        if (always_ordered(stream, *other)) continue;
        if (may_meet_later) return true;
    }
    if (meets_queued(stream, operation)) return true;
    for (auto next = stream.queue.begin(); operation.in_graph && next != stream.queue.end() && next->in_graph; ++next) {
        if (next->order != operation.order && !next->mark.follows(operation.mark)) return true;
    }
    return false;
}

bool Scheduler::meets_queued(const Stream &stream, const Operation &operation) const {
    return std::any_of(streams_.begin(), streams_.end(), [&](const auto &other) {
        return other.get() != &stream && !other->queue.empty() && !other->queue.front().mark.follows(operation.mark);
    });
}

Touched Scheduler::touched(std::string name) const {
    const Stream &stream = *running_.stream;
    const Operation &operation = *running_.operation;
    Touched touched;
    touched.mark = operation.mark;
    touched.order = operation.order;
    touched.device = stream.device;
    touched.is_launch = operation.is_launch;
    touched.is_free = operation.frees;
    touched.is_allocation = operation.allocates;
    touched.non_blocking = !stream.blocking();
    touched.is_default = stream.legacy;
    touched.in_graph = operation.in_graph;
    touched.stream = stream.number();
    touched.name = std::move(name);
    touched.overtakes = operation.overtakes;
    touched.overtaken = operation.overtaken;
    return touched;
}

// All that can come comes after an operation that the host knows of, and that each stream's next operation follows.
void Scheduler::forget_touched() {
    Runtime::get()->order.forget(
        [&](const Mark &mark) {
            if (host_clock_.at(mark.lane) < mark.step) return false;
            return std::all_of(streams_.begin(), streams_.end(), [&](const auto &stream) {
                // Behind the first operation all others follow, but those of one graph.
                for (const Operation &next : stream->queue) {
                    if (next.mark.lane != mark.lane || next.mark.step != mark.step) {
                        if (!next.mark.follows(mark) || next.overtakes) return false;
                    }
                    if (!next.in_graph) break;
                }
                return true;
            });
        },
        !stands_still());
}

// The streams whose first operation can run now and that the targets need.
std::vector<Stream *> Scheduler::ready_for(const std::vector<Ticket> &targets) const {
    std::vector<Stream *> seen, ready;
    std::vector<Ticket> open(targets.begin(), targets.end());
    while (!open.empty()) {
        const Ticket ticket = open.back();
        open.pop_back();
        if (ticket.done() || std::find(seen.begin(), seen.end(), ticket.stream.get()) != seen.end()) continue;
        Stream *const stream = ticket.stream.get();
        seen.push_back(stream);
        if (is_ready(*stream)) {
            ready.push_back(stream);
        } else if (!stream->busy) {
            const std::vector<Ticket> &after = stream->queue.front().after;
            open.insert(open.end(), after.begin(), after.end());
        }
    }
    return ready;
}

// Runs one operation of a stream that ranks above the host, if one can run now.
bool Scheduler::run_one_ahead() {
    Stream *first = nullptr;
    for (const auto &stream : streams_) {
        if (stream->rank <= host_rank_ || !is_ready(*stream)) continue;
        if (!first || precedes(stream.get(), first)) first = stream.get();
    }
    if (first) run_front(*first);
    return first;
}

void Scheduler::run_ahead() {
    if (this_thread().in_host_function) return;
    if (shuffle_ && random_() % kRedraw == 0) host_rank_ = draw();
    while (run_one_ahead()) {
    }
    forget_finished();
}

// Runs one operation that ranks above the host or that the targets need, if one can run now.
bool Scheduler::run_one(const std::vector<Ticket> &targets) {
    if (run_one_ahead()) return true;
    const std::vector<Stream *> ready = ready_for(targets);
    if (ready.empty()) return false;
    run_front(**std::min_element(ready.begin(), ready.end(), precedes));
    return true;
}

void Scheduler::run_front(Stream &stream) {
    run_front(stream, true);
}

// may_pause: of a launch that has paused; false: nothing else can help it on.
void Scheduler::run_front(Stream &stream, bool may_pause) {
    const std::shared_ptr<Stream> kept = stream.shared_from_this();
    const bool collected = collects(stream, stream.queue.front());
    Operation operation = std::move(stream.queue.front());
    std::optional<Pause> paused;
    paused.swap(stream.paused);
    stream.busy = true;
    running_ = {&stream, &operation, collected};
    pause_.reset();
    const uint64_t sequence = stream.completed + 1;
    if (operation.host_function) {
        const PerThreadStream legacy(false);  // whichever call this one runs within
        this_thread().in_host_function = true;
        const cudaError_t before = this_thread().last_error;  // a host function has a thread of its own on a GPU
        learn(operation.mark);  // whatever it tells other threads of the host, they know that the stream came to it
        lock_.unlock();
        operation.run();
        lock_.lock();
        this_thread().in_host_function = false;
        this_thread().last_error = before;
    } else {
        try {
            Runtime &runtime = *Runtime::get();
            // Of a free before it: then the memory can still be named.
            const bool looks = collected && !operation.regions.empty();
            if (looks && operation.frees)
                runtime.order.add_regions(runtime, touched(operation.call), operation.regions);
            if (paused) {
                paused->resume(may_pause);
            } else {
                operation.run();
            }
            if (looks && !operation.frees)
                runtime.order.add_regions(runtime, touched(operation.call), operation.regions);
        } catch (...) {
            Runtime::get()->fail(code_of_exception());
        }
    }
    running_ = {};
    stream.busy = false;
    if (pause_ && stream.completed < sequence) {
        stream.queue.front() = std::move(operation);
        stream.paused = std::exchange(pause_, std::nullopt);
        stream.paused_at = steps_;
        return;
    }
    pause_.reset();
    ++steps_;
    if (shuffle_ && random_() % kRedraw == 0) stream.rank = draw();
    Runtime::get()->reports.host.completed(operation.what, stream.number(), operation.queued_by);
    if (stream.completed < sequence) {  // else a failure has emptied the queue meanwhile
        stream.queue.pop_front();
        stream.completed = sequence;
    }
    forget_touched();
    finished_.notify_all();
}

bool Scheduler::stands_still() const {
    return std::any_of(streams_.begin(), streams_.end(), [](const auto &stream) { return stream->paused.has_value(); });
}

// Where a launch stands still: others run that it may wait for.
bool Scheduler::run_beside() {
    if (!stands_still()) return false;
    Stream *first = nullptr;
    for (const auto &stream : streams_) {
        if (is_ready(*stream) && (!first || precedes(stream.get(), first))) first = stream.get();
    }
    if (!first) {
        const auto turn = [](const Stream &stream) { return stream.id - resumed_last - 1; };
        for (const auto &stream : streams_) {
            const bool waits = stream->paused && stream->paused->undecided;
            if (waits && (!first || turn(*stream) < turn(*first))) first = stream.get();
        }
        if (first) resumed_last = first->id;
    }
    if (first) run_front(*first);
    return first;
}

// True: another host thread has queued something, or ended it.
bool Scheduler::wait_for_others() {
    if (host_threads() <= 1) return false;
    const uint64_t before = activity();
    std::unique_lock held(lock_, std::adopt_lock);
    for (unsigned i = 0; i < kLooks && activity() == before; ++i) finished_.wait_for(held, kBetweenLooks);
    held.release();
    return activity() != before;
}

// Nothing else can run: the launch that paused first says what its blocks wait for, and the others are named.
bool Scheduler::resume_first() {
    Stream *first = nullptr;
    std::string others;
    for (const auto &stream : streams_) {
        if (stream->paused && (!first || stream->queue.front().order < first->queue.front().order))
            first = stream.get();
    }
    for (const auto &stream : streams_) {
        if (!stream->paused || stream.get() == first) continue;
        others += (others.empty() ? "kernel " : ", kernel ") + stream->queue.front().what.name + " in " +
                  name_of(*stream, legacy_.size());
    }
    if (first) run_front(*first, false);
    if (first && !first->paused && !others.empty()) say("what stood still with it: " + others);
    return first;
}

void Scheduler::wait_for(const std::vector<Ticket> &targets) {
    for (const Ticket &target : targets) learn(target);
    const auto is_over = [&] {
        return std::all_of(targets.begin(), targets.end(), [](const Ticket &ticket) { return ticket.done(); });
    };
    const auto is_busy = [](const auto &stream) { return stream->busy; };
    ++host_waits_;
    while (!is_over()) {
        if (run_one(targets)) continue;
        const bool elsewhere = std::any_of(streams_.begin(), streams_.end(), is_busy);
        if (run_beside()) continue;
        if (stands_still() && !elsewhere && (wait_for_others() || resume_first())) continue;
        std::unique_lock held(lock_, std::adopt_lock);
        finished_.wait(held);
        held.release();
    }
    --host_waits_;
    forget_finished();
    forget_touched();
}

void Scheduler::wait(const Ticket &ticket) {
    wait_for({ticket});
}

void Scheduler::wait_all() {
    std::vector<Ticket> targets;
    for (const auto &stream : streams_) targets.push_back(last(stream));
    wait_for(targets);
}

void Scheduler::wait_device(unsigned device) {
    std::vector<Ticket> targets;
    for (const auto &stream : streams_)
        if (stream->device == device) targets.push_back(last(stream));
    wait_for(targets);
}

void Scheduler::progress(const Ticket &ticket) {
    if (!ticket.done() && !run_one({ticket})) run_beside();
}

bool Scheduler::run_any() {
    std::vector<Ticket> targets;
    for (const auto &stream : streams_) targets.push_back(last(stream));
    return run_one(targets) || run_beside();
}

bool Scheduler::has_queued() const {
    return std::any_of(streams_.begin(), streams_.end(), [](const auto &stream) { return !stream->queue.empty(); });
}

uint64_t Scheduler::activity() const {
    uint64_t sum = next_order_;
    for (const auto &stream : streams_) sum += stream->completed;
    return sum;
}

void Scheduler::abandon() {
    for (const auto &stream : streams_) {
        stream->queue.clear();
        stream->paused.reset();
        stream->completed = stream->queued;
    }
    finished_.notify_all();
}

uint64_t Scheduler::pending_launches() const {
    uint64_t count = 0;
    for (const auto &stream : streams_) {
        for (const Operation &operation : stream->queue) count += operation.is_launch;
    }
    return count;
}

}  // namespace warpsim::rt
