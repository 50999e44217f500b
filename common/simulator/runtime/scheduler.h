// Streams as queues of deferred operations, and the order in which they run. By default nothing runs when it is queued;
// it runs when something waits for it.
//
// The other schedules rank the streams and the host. An operation of a stream that ranks above the host runs as soon as
// what it must follow is done; one of a stream below the host runs when the host waits, needs it, and no stream of a
// higher rank can go on. `last:K` ranks stream K below the host and all others above it. Let a be an operation of
// stream K and b one of another stream, which nothing orders. When a runs, the host is waiting for something that needs
// a, and the other streams are at an end or need a themselves: so b has run, or it was never queued. (Were b queued
// later, it would come after a, by the host's wait.) Stream K last has b before a, b's stream last has a before b: one
// schedule for each stream tries every pair of unordered operations both ways.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "report/host_log.h"
#include "runtime/cuda_api.h"
#include "runtime/launch_order.h"

namespace warpsim::rt {

struct Event;
struct GraphAllocation;
struct Graph;
struct Stream;

// The `sequence`-th operation of a stream; done once the stream has completed that many.
struct Ticket {
    std::shared_ptr<Stream> stream;  // null: nothing to wait for
    uint64_t sequence = 0;
    SharedClock clock = nullptr;  // what whoever waits for it comes after
    bool done() const;
};

// A launch that has not ended and lets others come first: its blocks wait for something that these may do.
struct Pause {
    bool undecided = false;                      // it may also go on by itself
    std::function<bool()> may_go_on;             // what its blocks look at has changed
    std::function<void(bool may_pause)> resume;  // runs it on; it may pause again
};

struct Operation {
    std::function<void()> run;   // may run more than once, where a graph holds it
    bool host_function = false;  // the program's own code: runs without the runtime's lock
    bool is_launch = false;
    cudaGraphNodeType node_type = cudaGraphNodeTypeEmpty;
    std::vector<Ticket> after;
    uint64_t order = 0;  // over all streams
    Mark mark;           // its place in the order that the program asks for; what it comes after may be given before
    bool in_graph = false;
    bool overtakes = false;  // a launch that may begin before the one before it in its stream, `overtaken`, is over
    Mark overtaken;
    bool frees = false, allocates = false;
    std::string call;                    // of a copy, a fill, a free or an allocation: the API's function, and
    std::vector<TouchedRegion> regions;  // what it touches of memory that devices reach
    OperationLabel what = {};
    uint64_t queued_by = 0;  // the host call, as the report counts them
    // A graph's: the event that each launch of it records anew, and the one whose latest record it waits for.
    std::shared_ptr<Event> records, waits;
    std::shared_ptr<GraphAllocation> memory;  // that a node of a graph allocates or frees
};

// A graph, built by capture or by hand.
struct Graph {
    static uint64_t next_number() {  // under the runtime's lock
        static uint64_t given = 0;
        return ++given;
    }

    struct Node {
        Operation operation;
        std::vector<Node *> after;
        std::shared_ptr<Graph> child;  // its nodes take the place of this one's operation
    };
    std::vector<std::unique_ptr<Node>> nodes;
    // What it is known by when it is gone: another graph, and its nodes, may lie at the same address then.
    const uint64_t number = next_number();
    // Capture: where it began, its number, how it was begun and by whom.
    Stream *origin = nullptr;
    uint64_t id = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id captured_by = {};

    Node *add(Operation operation) {
        nodes.push_back(std::make_unique<Node>(Node{std::move(operation), {}, {}}));
        return nodes.back().get();
    }
};

struct Stream : std::enable_shared_from_this<Stream> {
    uint64_t id = 0;
    unsigned device = 0;
    unsigned flags = 0;
    int priority = 0;
    bool legacy = false;  // the default stream that joins all blocking ones
    bool destroyed = false;
    bool busy = false;                // its first operation is running right now
    std::optional<Pause> paused;      // its first operation is a launch that has paused, when so many steps
    uint64_t paused_at = 0;           // of the scheduler were done
    SharedClock clock;                // of all that was queued
    std::vector<uint32_t> branches;   // lanes of what its graphs do besides the stream's own
    std::optional<Mark> last_launch;  // where the last operation queued is one
    uint32_t rank = 0;                // beside the other streams' and the host's
    uint64_t queued = 0, completed = 0;
    std::deque<Operation> queue;
    std::shared_ptr<Graph> capture;    // operations go there instead
    std::vector<Graph::Node *> tails;  // of the capture: what the stream's next operation comes after
    cudaStreamCaptureStatus capture_status = cudaStreamCaptureStatusNone;

    bool blocking() const { return !(flags & cudaStreamNonBlocking); }
    cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(this); }
    // As the report numbers streams: the first ones are the devices' legacy default streams, 0 that of device 0.
    int64_t number() const { return legacy ? device : static_cast<int64_t>(id) - 1; }
    uint32_t lane() const { return static_cast<uint32_t>(id); }
};

class Scheduler {
  public:
    // `lock` is held by the caller of every member. Independent streams run as late as possible and in the order of
    // their calls; for a seed other than 0 ranks are random; else `last_stream`, if it is not negative, is the number
    // of the stream that ranks below the host.
    Scheduler(std::mutex &lock, uint64_t seed, int64_t last_stream, unsigned devices);

    // Of the calling thread's device.
    std::shared_ptr<Stream> create(unsigned flags, int priority);
    // The stream behind a handle; 0 is the legacy default stream of the calling thread's device or,
    // within a PerThreadStream, the thread's own. Throws Failure{cudaErrorInvalidResourceHandle}.
    std::shared_ptr<Stream> resolve(cudaStream_t);
    // The handle becomes invalid; what is queued still runs.
    void destroy(const std::shared_ptr<Stream> &);

    // Queues an operation behind those that it must follow. Under capture it goes to the graph, and the ticket is
    // empty.
    Ticket enqueue(const std::shared_ptr<Stream> &, Operation);
    static Ticket last(const std::shared_ptr<Stream> &stream) { return {stream, stream->queued, stream->clock}; }
    // Operations of a graph come after this if they come after none of it, and `end` gives the stream what they all
    // come after. A branch is a lane besides the stream's own.
    SharedClock begin_graph(const std::shared_ptr<Stream> &);
    uint32_t branch(Stream &, size_t number);
    void end_graph(const std::shared_ptr<Stream> &, const Clock &end);

    void wait(const Ticket &);
    void wait_all();
    void wait_device(unsigned device);
    // The host has seen that the ticket is done.
    void learn(const Ticket &ticket) { host_clock_.join(ticket.clock); }
    // The host can have seen, by what it does with its own memory, that the operation is done.
    void learn(const Mark &mark) {
        host_clock_.join(mark.before);
        host_clock_.advance(mark.lane, mark.step);
    }
    // Runs at most one operation that the ticket needs.
    void progress(const Ticket &);
    // Runs one operation that is ready, if any is.
    bool run_any();
    bool has_queued() const;
    bool stands_still() const;  // a launch has paused
    // Nothing can help the launch that paused first: it says what its blocks wait for. False: none has paused.
    bool resume_first();
    uint64_t activity() const;  // changes whenever an operation is queued or completed
    // Runs what ranks above the host. For the end of an API call: host functions run without the lock.
    void run_ahead();
    // Forgets whatever is queued.
    void abandon();
    void reset();
    // The device's streams are gone; its default stream begins anew.
    void reset_device(unsigned device);

    // For the operation that runs.
    struct Running {
        Stream *stream = nullptr;
        const Operation *operation = nullptr;
        bool collects = false;  // what it touches may meet something that nothing orders with it
    };
    const Running &running() const { return running_; }
    // Something queued in another stream is not ordered with it.
    bool meets_queued() const { return meets_queued(*running_.stream, *running_.operation); }
    Touched touched(std::string name) const;
    void pause(Pause pause) { pause_ = std::move(pause); }

    // Launches still queued: nothing has waited for them.
    uint64_t pending_launches() const;
    const std::vector<std::shared_ptr<Stream>> &streams() const { return streams_; }

  private:
    std::shared_ptr<Stream> add(unsigned flags, int priority, unsigned device, bool legacy);
    SharedClock clock_of(const Stream &, const Operation &) const;
    bool is_ready(const Stream &) const;
    bool collects(const Stream &, const Operation &) const;
    bool meets_queued(const Stream &, const Operation &) const;
    void forget_touched();
    bool run_beside();
    bool wait_for_others();
    std::vector<Stream *> ready_for(const std::vector<Ticket> &targets) const;
    bool run_one_ahead();
    bool run_one(const std::vector<Ticket> &targets);
    uint32_t draw() { return static_cast<uint32_t>(random_() >> 32); }
    void run_front(Stream &);
    void run_front(Stream &, bool may_pause);
    void wait_for(const std::vector<Ticket> &targets);
    void forget_finished();

    std::mutex &lock_;
    std::condition_variable finished_;  // an operation that ran without the lock has ended
    std::mt19937_64 random_;
    bool shuffle_;
    int64_t last_stream_;
    uint32_t host_rank_;
    uint64_t next_order_ = 1, next_id_ = 1, steps_ = 1;
    uint32_t next_branch_ = 1u << 31;
    unsigned host_waits_ = 0;  // for targets that it has named
    Clock host_clock_;
    Running running_;
    std::optional<Pause> pause_;                    // of the operation that runs
    std::vector<std::shared_ptr<Stream>> legacy_;   // by device
    std::vector<std::shared_ptr<Stream>> streams_;  // in order of creation
};

}  // namespace warpsim::rt
