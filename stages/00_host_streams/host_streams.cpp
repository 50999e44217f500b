// Stage 00: host streams. A batch of attention problems lives in host memory. Chunk by chunk it is copied to the
// device, computed there and copied back: one after the other, or side by side in streams.
//
// A device has one engine for copies in, one for copies out, and its multiprocessors. A stream is a queue: what is in
// one stream runs in order, what is in different streams may overlap, if it needs different engines.

#include "host_streams.h"

namespace streams {

// Chunk c of Q, K and V to the s-th set of buffers. Queued, if the host's memory is pinned: the copy engine reads it
// while the host goes on. Pageable memory the engine cannot read, since the system may move it at any time: the call
// then copies it to a pinned buffer of the driver's first, and the host waits for that.
static void copy_in(const Work &work, int c, int s, cudaStream_t stream) {
    const Recorded recorded(work, "copy in", c, stream);
    const Slice from = work.chunk(c), &to = work.device[s];
    must(cudaMemcpyAsync(to.Q, from.Q, work.bytes(), cudaMemcpyHostToDevice, stream), "copy of Q");
    must(cudaMemcpyAsync(to.K, from.K, work.bytes(), cudaMemcpyHostToDevice, stream), "copy of K");
    must(cudaMemcpyAsync(to.V, from.V, work.bytes(), cudaMemcpyHostToDevice, stream), "copy of V");
}

static void compute(const Work &work, int c, int s, cudaStream_t stream) {
    const Recorded recorded(work, "compute", c, stream);
    work.attention(s, stream);
}

// Chunk c of O back to the host.
static void copy_out(const Work &work, int c, int s, cudaStream_t stream) {
    const Recorded recorded(work, "copy out", c, stream);
    must(cudaMemcpyAsync(work.chunk(c).O, work.device[s].O, work.bytes(), cudaMemcpyDeviceToHost, stream), "copy of O");
}

// ---- serial ----
// cudaMemcpy goes to the default stream and returns when the copy is done, so nothing ever overlaps.
void serial(const Work &work) {
    const Slice &device = work.device[0];
    for (int c = 0; c < work.chunks; ++c) {
        const Slice host = work.chunk(c);
        {
            const Recorded recorded(work, "copy in", c, nullptr);
            must(cudaMemcpy(device.Q, host.Q, work.bytes(), cudaMemcpyHostToDevice), "copy of Q");
            must(cudaMemcpy(device.K, host.K, work.bytes(), cudaMemcpyHostToDevice), "copy of K");
            must(cudaMemcpy(device.V, host.V, work.bytes(), cudaMemcpyHostToDevice), "copy of V");
        }
        compute(work, c, 0, nullptr);
        // In the same stream as the kernel, so it waits for the kernel; and the host waits for it.
        const Recorded recorded(work, "copy out", c, nullptr);
        must(cudaMemcpy(host.O, device.O, work.bytes(), cudaMemcpyDeviceToHost), "copy of O");
    }
}

// ---- one stream ----
// The host queues everything and goes on; the device still does one thing after the other.
void one_stream(const Work &work) {
    const cudaStream_t stream = work.streams[0];
    for (int c = 0; c < work.chunks; ++c) {
        copy_in(work, c, 0, stream);
        compute(work, c, 0, stream);
        copy_out(work, c, 0, stream);
    }
    must(cudaStreamSynchronize(stream), "waiting for the stream");  // before anybody reads O
}

// ---- many streams ----
// While one stream computes, another copies in and a third copies out. Buffers need no further care: chunk c + S uses
// those of chunk c, and as it is in the same stream, it comes after it.
void many_streams(const Work &work) {
    const int S = static_cast<int>(work.streams.size());
    for (int c = 0; c < work.chunks; ++c) {
        const int s = c % S;
        copy_in(work, c, s, work.streams[s]);
        compute(work, c, s, work.streams[s]);
        copy_out(work, c, s, work.streams[s]);
    }
    for (cudaStream_t stream : work.streams) must(cudaStreamSynchronize(stream), "waiting for a stream");
}

// ---- by engine ----
// The same overlap with a stream for each engine. Now one chunk's work lies in three streams, and only events order it:
// a stream that waits for an event goes on when the work before the event's record is done. The host never waits.
void by_engine(const Work &work) {
    const int S = static_cast<int>(work.device.size());  // sets of buffers: how far copies in may run ahead
    const cudaStream_t in = work.streams[0], kernels = work.streams[1], out = work.streams[2];
    struct Events {
        cudaEvent_t filled, computed, drained;
    };
    std::vector<Events> events(S);
    for (Events &event : events) {
        for (cudaEvent_t *one : {&event.filled, &event.computed, &event.drained}) {
            must(cudaEventCreateWithFlags(one, cudaEventDisableTiming), "cudaEventCreate");
        }
    }
    for (int c = 0; c < work.chunks; ++c) {
        const int s = c % S;
        // Q, K and V of chunk c - S have been read by its kernel. (An event that was never recorded is no obstacle.)
        must(cudaStreamWaitEvent(in, events[s].computed), "cudaStreamWaitEvent");
        copy_in(work, c, s, in);
        must(cudaEventRecord(events[s].filled, in), "cudaEventRecord");

        must(cudaStreamWaitEvent(kernels, events[s].filled), "cudaStreamWaitEvent");   // Q, K and V are there
        must(cudaStreamWaitEvent(kernels, events[s].drained), "cudaStreamWaitEvent");  // O of chunk c - S has left
        compute(work, c, s, kernels);
        must(cudaEventRecord(events[s].computed, kernels), "cudaEventRecord");

        must(cudaStreamWaitEvent(out, events[s].computed), "cudaStreamWaitEvent");  // O is there
        copy_out(work, c, s, out);
        must(cudaEventRecord(events[s].drained, out), "cudaEventRecord");
    }
    must(cudaStreamSynchronize(out), "waiting for the last copy");  // it came after everything else
    for (const Events &event : events) {
        for (cudaEvent_t one : {event.filled, event.computed, event.drained}) {
            must(cudaEventDestroy(one), "cudaEventDestroy");
        }
    }
}

void Recorder::begin(const char *kind, int chunk, int index, cudaStream_t stream) {
    Span span{kind, chunk, index, nullptr, nullptr};
    must(cudaEventCreate(&span.start), "cudaEventCreate");
    must(cudaEventCreate(&span.end), "cudaEventCreate");
    must(cudaEventRecord(span.start, stream), "cudaEventRecord");
    spans_.push_back(span);
}

void Recorder::end(cudaStream_t stream) {
    must(cudaEventRecord(spans_.back().end, stream), "cudaEventRecord");
}

}  // namespace streams
