// The program around host_streams.cpp: runs variants, checks every result, takes times and timelines.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "batch.h"
#include "json_writer.h"
#include "options.h"

using namespace streams;

namespace {

struct Run {
    const Variant *variant;
    int chunks, streams;
    std::string problem;  // what is wrong, or ""
    std::vector<double> ms;
    std::string spans;  // JSON; empty where nothing was timed
};

// Spans as JSON, in ms after the first event.
std::string spans_json(const Recorder &recorder) {
    json::Writer w;
    w.open('[');
    const auto &spans = recorder.spans();
    const auto since_first = [&](cudaEvent_t event) {
        float ms = 0;
        if (event != spans.front().start) must(cudaEventElapsedTime(&ms, spans.front().start, event), "elapsed time");
        return ms;
    };
    for (const Recorder::Span &span : spans) {
        w.open('{').key("kind").string(span.kind).key("chunk").integer(span.chunk).key("stream").integer(span.stream);
        w.key("start_ms").real(since_first(span.start)).key("end_ms").real(since_first(span.end)).close('}');
    }
    for (const Recorder::Span &span : spans) {
        cudaEventDestroy(span.start);
        cudaEventDestroy(span.end);
    }
    return w.close(']').take();
}

Run run(const Options &options, const Variant &variant, int chunks, int streams, const Kernel &kernel,
        const Slice &host, const Checker &checker, bool simulated) {
    const flash::Problem &batch = options.problem;
    flash::Problem chunk = batch;
    chunk.B = batch.B / chunks;
    const int sets = variant.uses_streams ? streams : 1;  // of buffers; and a stream for each, or for each engine
    DeviceSide device(kernel, chunk, sets, variant.run == by_engine ? 3 : sets);
    Work work;
    work.host = host;
    work.chunks = chunks;
    work.elements = chunk.q_elements();
    work.streams = device.streams;
    work.device = device.slices;
    work.attention = [&](int s, cudaStream_t stream) { kernel.launch(device.params[s], stream); };

    Run result{&variant, chunks, streams, "", {}, ""};
    std::fill(host.O, host.O + batch.q_elements(), flash::poison);
    variant.run(work);
    result.problem = checker.check(host);  // at once: a variant that does not wait shows here
    must(cudaDeviceSynchronize(), "the device");
    if (simulated || !result.problem.empty()) return result;
    for (int i = 0; i < options.repeat; ++i) {
        const auto start = std::chrono::steady_clock::now();
        variant.run(work);
        const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
        result.ms.push_back(ms.count());
    }
    Recorder recorder;
    work.recorder = &recorder;
    variant.run(work);
    must(cudaDeviceSynchronize(), "the device");
    result.spans = spans_json(recorder);
    std::sort(result.ms.begin(), result.ms.end());
    return result;
}

double quantile(const std::vector<double> &sorted, double q) {
    return sorted[static_cast<size_t>(q * (sorted.size() - 1) + 0.5)];
}

std::string to_json(const Run &run) {
    json::Writer w;
    w.open('{').key("variant").string(run.variant->name).key("title").string(run.variant->title);
    w.key("memory").string(run.variant->pinned ? "pinned" : "pageable");
    w.key("chunks").integer(run.chunks).key("streams").integer(run.streams).key("passed").boolean(run.problem.empty());
    w.key("ms");
    if (run.ms.empty()) {
        w.null();
    } else {
        w.open('{').key("median").real(quantile(run.ms, 0.5)).key("p20").real(quantile(run.ms, 0.2));
        w.key("p80").real(quantile(run.ms, 0.8)).close('}');
    }
    return w.key("spans").raw(run.spans.empty() ? "[]" : run.spans).close('}').take();
}

// GB/s of copies of 256 MiB: in, out and both at once, from pageable and from pinned memory. Prints JSON.
void print_bandwidth() {
    constexpr size_t bytes = 256 << 20, elements = bytes / sizeof(uint16_t);
    void *device[2];
    cudaStream_t stream[2];
    for (int i = 0; i < 2; ++i) {
        must(cudaMalloc(&device[i], bytes), "device memory");
        must(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking), "cudaStreamCreate");
    }
    json::Writer w;
    w.open('[');
    for (const bool pinned : {false, true}) {
        const HostBatch host(elements, pinned);
        for (uint16_t *tensor : {host.slice.Q, host.slice.K}) std::memset(tensor, 1, bytes);
        for (const char *direction : {"h2d", "d2h", "both"}) {
            const bool in = std::strcmp(direction, "d2h"), out = std::strcmp(direction, "h2d");
            std::vector<double> times;
            for (int i = 0; i < 8; ++i) {
                const auto start = std::chrono::steady_clock::now();
                if (in)
                    must(cudaMemcpyAsync(device[0], host.slice.Q, bytes, cudaMemcpyHostToDevice, stream[0]), "copy in");
                if (out)
                    must(cudaMemcpyAsync(host.slice.K, device[1], bytes, cudaMemcpyDeviceToHost, stream[1]),
                         "copy out");
                must(cudaDeviceSynchronize(), "the copies");
                times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
            }
            std::sort(times.begin() + 1, times.end());  // the first one warms up
            w.open('{').key("memory").string(pinned ? "pinned" : "pageable").key("direction").string(direction);
            w.key("gb_s").real((in + out) * double(bytes) / times[4] / 1e9).close('}');
        }
    }
    std::printf("%s\n", w.close(']').take().c_str());
    for (int i = 0; i < 2; ++i) cudaFree(device[i]), cudaStreamDestroy(stream[i]);
}

int run_all(const Options &options) {
    int number = 0;
    cudaDeviceProp properties{};
    must(cudaGetDevice(&number), "no usable CUDA device");
    must(cudaGetDeviceProperties(&properties, number), "device properties");
    const bool simulated = std::strstr(properties.name, "warpsim") != nullptr;  // "NVIDIA H200 (warpsim)"
    if (options.bandwidth) {
        if (simulated) throw Refused("--bandwidth needs a GPU: the simulator's time says nothing");
        print_bandwidth();
        return right;
    }
    const Kernel kernel(options.stage);
    std::printf("stage 00 on %s, kernel of stage %02d, %s\n", properties.name, options.stage,
                options.problem.text().c_str());
    json::Writer runs;
    runs.open('[');
    int failures = 0;
    std::unique_ptr<HostBatch> memory[2];  // pageable, pinned: with the same numbers
    std::unique_ptr<Checker> checker;
    for (const Variant *variant : options.chosen) {
        std::unique_ptr<HostBatch> &host = memory[variant->pinned];
        if (!host) {
            host = std::make_unique<HostBatch>(options.problem.q_elements(), variant->pinned);
            fill(options.problem, host->slice);
            if (!checker) checker = std::make_unique<Checker>(options.problem, host->slice);
        }
        const std::vector<int> one{1}, &stream_counts = variant->uses_streams ? options.streams : one;
        for (int streams : stream_counts) {
            for (int chunks : options.chunks) {
                const Run result = run(options, *variant, chunks, streams, kernel, host->slice, *checker, simulated);
                failures += !result.problem.empty();
                std::printf("  %-15s %2d chunks, %d stream%s  ", variant->name, chunks, streams,
                            streams > 1 ? "s:" : ": ");
                if (!result.ms.empty()) std::printf("%9.3f ms, ", quantile(result.ms, 0.5));
                std::printf("%s\n", result.problem.empty() ? "right" : ("WRONG: " + result.problem).c_str());
                std::fflush(stdout);
                runs.raw("\n" + to_json(result));
            }
        }
    }
    if (!options.json.empty()) {
        std::FILE *file = std::fopen(options.json.c_str(), "w");
        json::Writer w;
        w.open('{').key("version").integer(1).key("device").string(properties.name).key("stage").integer(options.stage);
        w.key("problem").string(options.problem.text()).key("runs").raw(runs.close(']').take()).close('}');
        bool good = file && std::fprintf(file, "%s\n", w.take().c_str()) > 0;
        good = file && std::fclose(file) == 0 && good;
        if (!good) throw Refused("cannot write " + options.json + ": " + std::strerror(errno));
    }
    return failures ? wrong : right;
}

}  // namespace

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv);
    try {
        return run_all(options);
    } catch (const Refused &error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return unsupported;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "%s: the host has not enough memory for this batch\n", argv[0]);
        return unsupported;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: CUDA error: %s\n", argv[0], error.what());
        return cuda_error;
    }
}
