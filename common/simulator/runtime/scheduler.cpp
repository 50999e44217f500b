#include "runtime/scheduler.h"

#include <algorithm>

#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

// A queue this long makes room before it takes more, as a GPU's does.
constexpr size_t kMostQueued = 1024;

constexpr uint32_t kBelow = 0, kHost = 1, kAbove = 2;  // ranks, where they are not random

// With random ranks each operation and each call draws a new one with a chance of 1 in so many.
constexpr uint64_t kRedraw = 4;

// Whether the stream's first operation can run now.
bool is_ready(const Stream &stream) {
    if (stream.queue.empty() || stream.busy) return false;
    const std::vector<Ticket> &after = stream.queue.front().after;
    return std::all_of(after.begin(), after.end(), [](const Ticket &before) { return before.done(); });
}

// Of two ready streams, which one goes first.
bool precedes(const Stream *a, const Stream *b) {
    return a->rank != b->rank ? a->rank > b->rank : a->queue.front().order < b->queue.front().order;
}

}  // namespace

bool Ticket::done() const {
    return !stream || stream->completed >= sequence;
}

Scheduler::Scheduler(std::mutex &lock, uint64_t seed, int64_t last_stream)
    : lock_(lock),
      random_(seed),
      shuffle_(seed != 0),
      last_stream_(last_stream),
      host_rank_(shuffle_ ? draw() : kHost) {
    reset();
}

void Scheduler::reset() {
    for (const auto &stream : streams_) stream->destroyed = true;
    streams_.clear();
    legacy_ = add(0, 0, true);
}

std::shared_ptr<Stream> Scheduler::create(unsigned flags, int priority) {
    return add(flags, priority, false);
}

std::shared_ptr<Stream> Scheduler::add(unsigned flags, int priority, bool legacy) {
    auto stream = std::make_shared<Stream>();
    stream->id = next_id_++;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = legacy;
    stream->rank = shuffle_ ? draw() : last_stream_ < 0 || stream->number() == last_stream_ ? kBelow : kAbove;
    streams_.push_back(stream);
    return stream;
}

std::shared_ptr<Stream> Scheduler::resolve(cudaStream_t handle, bool per_thread) {
    if (!handle) handle = per_thread ? cudaStreamPerThread : cudaStreamLegacy;
    if (handle == cudaStreamLegacy) return legacy_;
    if (handle == cudaStreamPerThread) {
        std::shared_ptr<Stream> &own = this_thread().default_stream;
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
    if (stream->capture) {
        if (stream->capture_status == cudaStreamCaptureStatusInvalidated)
            throw Failure{cudaErrorStreamCaptureInvalidated};
        Graph &graph = *stream->capture;
        Graph::Node *before = graph.nodes.empty() ? nullptr : graph.nodes.back().get();
        Graph::Node *node = graph.add(std::move(operation));
        if (before) node->after.push_back(before);
        return {};
    }
    if (stream->queue.size() >= kMostQueued && !this_thread().in_host_function) {
        wait({stream, stream->queued - kMostQueued / 2});
    }
    // The legacy default stream and the blocking streams wait for each other.
    if (stream->legacy) {
        for (const auto &other : streams_) {
            if (other != stream && other->blocking() && !other->queue.empty()) operation.after.push_back(last(other));
        }
    } else if (stream->blocking() && !legacy_->queue.empty()) {
        operation.after.push_back(last(legacy_));
    }
    operation.order = next_order_++;
    operation.queued_by = Runtime::get()->reports.host.current();
    stream->queue.push_back(std::move(operation));
    Runtime::get()->idle.watch();
    return {stream, ++stream->queued};
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
    const std::shared_ptr<Stream> kept = stream.shared_from_this();
    const Operation operation = std::move(stream.queue.front());
    stream.busy = true;
    const uint64_t sequence = stream.completed + 1;
    if (operation.host_function) {
        this_thread().in_host_function = true;
        lock_.unlock();
        operation.run();
        lock_.lock();
        this_thread().in_host_function = false;
    } else {
        try {
            operation.run();
        } catch (...) {
            Runtime::get()->fail(code_of_exception());
        }
    }
    stream.busy = false;
    if (shuffle_ && random_() % kRedraw == 0) stream.rank = draw();
    Runtime::get()->reports.host.completed(operation.what, stream.number(), operation.queued_by);
    if (stream.completed < sequence) {  // else a failure has emptied the queue meanwhile
        stream.queue.pop_front();
        stream.completed = sequence;
    }
    finished_.notify_all();
}

void Scheduler::wait_for(const std::vector<Ticket> &targets) {
    while (!std::all_of(targets.begin(), targets.end(), [](const Ticket &ticket) { return ticket.done(); })) {
        if (run_one(targets)) continue;
        std::unique_lock held(lock_, std::adopt_lock);
        finished_.wait(held);
        held.release();
    }
    forget_finished();
}

void Scheduler::wait(const Ticket &ticket) {
    wait_for({ticket});
}

void Scheduler::wait_all() {
    std::vector<Ticket> targets;
    for (const auto &stream : streams_) targets.push_back(last(stream));
    wait_for(targets);
}

void Scheduler::progress(const Ticket &ticket) {
    if (!ticket.done()) run_one({ticket});
}

bool Scheduler::run_any() {
    std::vector<Ticket> targets;
    for (const auto &stream : streams_) targets.push_back(last(stream));
    return run_one(targets);
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
