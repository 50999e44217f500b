#include "runtime/scheduler.h"

#include <algorithm>

#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

// A queue this long makes room before it takes more, as a GPU's does.
constexpr size_t kMostQueued = 1024;

}  // namespace

bool Ticket::done() const {
    return !stream || stream->completed >= sequence;
}

Scheduler::Scheduler(std::mutex &lock, uint64_t seed) : lock_(lock), random_(seed), shuffle_(seed != 0) {
    reset();
}

void Scheduler::reset() {
    for (const auto &stream : streams_) stream->destroyed = true;
    streams_.clear();
    legacy_ = create(0, 0);
    legacy_->legacy = true;
}

std::shared_ptr<Stream> Scheduler::create(unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>();
    stream->id = next_id_++;
    stream->flags = flags;
    stream->priority = priority;
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
    return {stream, ++stream->queued};
}

// Runs one operation that the targets need, if one can run now.
bool Scheduler::run_one(const std::vector<Ticket> &targets) {
    std::vector<Stream *> seen, ready;
    std::vector<Ticket> open(targets.begin(), targets.end());
    const auto visit = [&](Stream &stream) {
        if (std::find(seen.begin(), seen.end(), &stream) != seen.end()) return;
        seen.push_back(&stream);
        if (stream.queue.empty() || stream.busy) return;
        bool waits = false;
        for (const Ticket &before : stream.queue.front().after) {
            if (before.done()) continue;
            waits = true;
            open.push_back(before);
        }
        if (!waits) ready.push_back(&stream);
    };
    while (!open.empty()) {
        const Ticket ticket = open.back();
        open.pop_back();
        if (!ticket.done()) visit(*ticket.stream);
    }
    if (ready.empty()) return false;
    const auto earlier = [](const Stream *a, const Stream *b) {
        return a->queue.front().order < b->queue.front().order;
    };
    if (!shuffle_) {
        run_front(**std::min_element(ready.begin(), ready.end(), earlier));
        return true;
    }
    // Another legal schedule: any ready stream may go first, also one that nobody waits for yet.
    if (random_() % 4 == 0) {
        for (const auto &stream : streams_) visit(*stream);
    }
    std::sort(ready.begin(), ready.end(), earlier);
    run_front(*ready[random_() % ready.size()]);
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
