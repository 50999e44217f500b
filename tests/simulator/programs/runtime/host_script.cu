// Does what its arguments say, one CUDA call for each, so that a test knows which call of the report is which:
//   N:op     an operation (a fill) in stream N        N:record:E   event E is recorded in stream N
//   N:wait:E stream N waits for event E               N:sync       the host waits for stream N
//   sync:E   the host waits for event E               sync         the host waits for the device
// Stream 0 is the default stream; of the others the odd ones are blocking, the even ones are not.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static void must(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    std::printf("%s: %s\n", what, cudaGetErrorName(code));
    std::exit(1);
}

int main(int argc, char **argv) {
    constexpr int kStreams = 5, kEvents = 4;
    void *memory;
    cudaStream_t streams[kStreams] = {};
    cudaEvent_t events[kEvents];
    must(cudaMalloc(&memory, 1), "cudaMalloc");
    for (int i = 1; i < kStreams; ++i) {
        must(cudaStreamCreateWithFlags(&streams[i], i % 2 ? cudaStreamDefault : cudaStreamNonBlocking), "stream");
    }
    for (cudaEvent_t &event : events) must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    for (int i = 1; i < argc; ++i) {
        const std::string text = argv[i];
        std::vector<std::string> words(1);
        for (char c : text) {
            if (c == ':') {
                words.emplace_back();
            } else {
                words.back() += c;
            }
        }
        const bool host = words[0] == "sync";
        const cudaStream_t stream = host ? nullptr : streams[std::stoi(words[0])];
        const std::string &what = host ? words[0] : words[1];
        const cudaEvent_t event = words.size() > (host ? 1u : 2u) ? events[std::stoi(words.back())] : nullptr;
        if (what == "op") must(cudaMemsetAsync(memory, 1, 1, stream), argv[i]);
        if (what == "record") must(cudaEventRecord(event, stream), argv[i]);
        if (what == "wait") must(cudaStreamWaitEvent(stream, event), argv[i]);
        if (what == "sync") {
            must(!host   ? cudaStreamSynchronize(stream)
                 : event ? cudaEventSynchronize(event)
                         : cudaDeviceSynchronize(),
                 argv[i]);
        }
    }
    return 0;
}
