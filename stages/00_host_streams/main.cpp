// The program around host_streams.cpp: options, a stage's kernel, the batch in host memory, checks, times, timelines.

#include <dlfcn.h>
#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>

#include "attention.h"
#include "host_streams.h"
#include "problem.h"
#include "reference.h"

using namespace streams;

namespace {

enum ExitStatus { right = 0, wrong = 1, wrong_usage = 2, unsupported = 3, cuda_error = 4 };

struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr char help[] =
    "usage: %s [options]\n"
    "Runs a batch of attention problems that lives in host memory, chunk by chunk, and checks every result.\n\n"
    "  --variant V,V      pageable, pinned, async, streams, engines, pageable_async (all)\n"
    "  --chunks C,C       into how many the batch is cut; each must divide it (4)\n"
    "  --streams S,S      of the variants streams and pageable_async; sets of buffers of engines (2)\n"
    "  --batch B          problems in the batch (8)\n"
    "  --heads H          (2)\n"
    "  --seq N            rows of Q, K and V (128)\n"
    "  --dim D            head dim: 64 or 128 (64)\n"
    "  --dtype T          bf16 or fp16 (bf16)\n"
    "  --stage NN         whose kernel computes (03: any GPU)\n"
    "  --repeat R         timed runs of each variant, on a GPU (5)\n"
    "  --json FILE        times and timelines of all runs\n"
    "  --bandwidth        only measure copies (on a GPU), as JSON\n"
    "  --help\n\n"
    "Exit status: 0 right, 1 wrong result, 2 wrong usage, 3 not supported, 4 CUDA error.\n";

struct Variant {
    const char *name;
    const char *title;
    void (*run)(const Work &);
    bool pinned;
    bool uses_streams;  // their number makes a difference
};
constexpr Variant variants[] = {
    {"pageable", "pageable memory, blocking copies", serial, false, false},
    {"pinned", "pinned memory, blocking copies", serial, true, false},
    {"async", "asynchronous copies in one stream", one_stream, true, false},
    {"streams", "streams", many_streams, true, true},
    {"engines", "a stream for each engine, ordered by events", by_engine, true, true},
    {"pageable_async", "streams, but pageable memory", many_streams, false, true},
};

struct Options {
    std::vector<const Variant *> chosen;
    std::vector<int> chunks{4}, streams{2};
    flash::Problem problem{.B = 8, .Nq = 128, .Nkv = 128, .d_head = 64};
    int stage = 3, repeat = 5;
    std::string json;
    bool bandwidth = false;
};

[[noreturn]] void usage_error(const char *program, const std::string &text) {
    std::fprintf(stderr, "%s: %s (--help lists the options)\n", program, text.c_str());
    std::exit(wrong_usage);
}

std::vector<std::string> split(const char *text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

Options parse_options(int argc, char **argv) {
    const option known[] = {{"variant", required_argument, nullptr, 'v'}, {"chunks", required_argument, nullptr, 'c'},
                            {"streams", required_argument, nullptr, 's'}, {"batch", required_argument, nullptr, 'b'},
                            {"heads", required_argument, nullptr, 'h'},   {"seq", required_argument, nullptr, 'n'},
                            {"dim", required_argument, nullptr, 'd'},     {"dtype", required_argument, nullptr, 't'},
                            {"stage", required_argument, nullptr, 'k'},   {"repeat", required_argument, nullptr, 'r'},
                            {"json", required_argument, nullptr, 'j'},    {"bandwidth", no_argument, nullptr, 'w'},
                            {"help", no_argument, nullptr, '?' + 1},      {nullptr, 0, nullptr, 0}};
    Options result;
    int index = 0;
    const auto positive = [&](const std::string &text) {
        char *end = nullptr;
        errno = 0;
        const long value = std::strtol(text.c_str(), &end, 10);
        if (errno || text.empty() || *end || value < 1 || value > INT_MAX) {
            usage_error(argv[0],
                        "--" + std::string(known[index].name) + " " + text + ": expected a positive whole number");
        }
        return static_cast<int>(value);
    };
    const auto numbers = [&] {
        std::vector<int> values;
        for (const std::string &part : split(optarg)) values.push_back(positive(part));
        if (values.empty()) usage_error(argv[0], "--" + std::string(known[index].name) + ": expected numbers");
        return values;
    };
    for (int which; (which = getopt_long(argc, argv, "", known, &index)) != -1;) {
        switch (which) {
            case 'v':
                for (const std::string &name : split(optarg)) {
                    const auto *found = std::find_if(std::begin(variants), std::end(variants),
                                                     [&](const Variant &variant) { return variant.name == name; });
                    if (found == std::end(variants))
                        usage_error(argv[0], "--variant " + name + ": there is none of that name");
                    result.chosen.push_back(found);
                }
                break;
            case 'c':
                result.chunks = numbers();
                break;
            case 's':
                result.streams = numbers();
                break;
            case 'b':
                result.problem.B = positive(optarg);
                break;
            case 'h':
                result.problem.Hq = result.problem.Hkv = positive(optarg);
                break;
            case 'n':
                result.problem.Nq = result.problem.Nkv = positive(optarg);
                break;
            case 'd':
                result.problem.d_head = positive(optarg);
                break;
            case 't':
                if (std::strcmp(optarg, "bf16") && std::strcmp(optarg, "fp16")) {
                    usage_error(argv[0], "--dtype " + std::string(optarg) + ": expected bf16 or fp16");
                }
                result.problem.dtype = std::strcmp(optarg, "bf16") ? FLASH_FP16 : FLASH_BF16;
                break;
            case 'k':
                result.stage = positive(optarg);
                break;
            case 'r':
                result.repeat = positive(optarg);
                break;
            case 'j':
                result.json = optarg;
                break;
            case 'w':
                result.bandwidth = true;
                break;
            case '?' + 1:
                std::printf(help, argv[0]);
                std::exit(right);
            default:
                std::fprintf(stderr, "%s --help lists the options\n", argv[0]);
                std::exit(wrong_usage);
        }
    }
    if (optind < argc) usage_error(argv[0], "unexpected argument '" + std::string(argv[optind]) + "'");
    for (int chunks : result.chunks) {
        if (result.problem.B % chunks) {
            usage_error(argv[0], "--chunks " + std::to_string(chunks) + ": must divide the batch of " +
                                     std::to_string(result.problem.B) + " problems");
        }
    }
    if (result.chosen.empty()) {
        for (const Variant &variant : variants) result.chosen.push_back(&variant);
    }
    return result;
}

// A stage's kernel, from the library that lies beside this program: ../lib/libstage_NN.so.
class Kernel {
  public:
    explicit Kernel(int stage) {
        char name[32];
        std::snprintf(name, sizeof name, "libstage_%02d.so", stage);
        const char *folder = std::getenv("FLASHLADDER_STAGE_LIBRARIES");
        const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
        const auto file = (folder ? std::filesystem::path(folder) : here.parent_path() / "lib") / name;
        void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) throw Refused(std::string("no kernel: ") + dlerror() + "; build it with `make build`");
        forward_ = reinterpret_cast<decltype(&flash_forward)>(dlsym(library, "flash_forward"));
        describe_ = reinterpret_cast<decltype(&flash_describe)>(dlsym(library, "flash_describe"));
        last_error_ = reinterpret_cast<decltype(&flash_last_error)>(dlsym(library, "flash_last_error"));
        if (!forward_ || !describe_ || !last_error_) throw Refused(file.string() + " is no stage of the ladder");
    }
    size_t workspace_bytes(const flash::Problem &problem) const {
        const FlashParams params = problem.params(nullptr, nullptr, nullptr, nullptr);
        FlashDescription description{};
        must(describe_(&params, &description));
        return description.workspace_bytes;
    }
    void launch(const FlashParams &params, cudaStream_t stream) const { must(forward_(&params, stream)); }

  private:
    void must(FlashStatus status) const {
        if (status == FLASH_CUDA_ERROR) throw CudaError(last_error_());
        if (status != FLASH_OK) throw Refused(last_error_());
    }
    decltype(&flash_forward) forward_;
    decltype(&flash_describe) describe_;
    decltype(&flash_last_error) last_error_;
};

struct FreePinned {
    void operator()(uint16_t *data) const { cudaFreeHost(data); }
};
struct FreeDevice {
    void operator()(void *data) const { cudaFree(data); }
};

// The batch's four tensors in host memory, pinned or pageable.
class HostBatch {
  public:
    HostBatch(size_t elements, bool pinned) {
        for (uint16_t **tensor : {&slice.Q, &slice.K, &slice.V, &slice.O}) {
            if (pinned) {
                must(cudaMallocHost(reinterpret_cast<void **>(tensor), elements * sizeof(uint16_t)), "pinned memory");
                pinned_.emplace_back(*tensor);
            } else {
                pageable_.push_back(std::make_unique<uint16_t[]>(elements));
                *tensor = pageable_.back().get();
            }
        }
    }
    Slice slice;

  private:
    std::vector<std::unique_ptr<uint16_t, FreePinned>> pinned_;
    std::vector<std::unique_ptr<uint16_t[]>> pageable_;
};

// Buffers for one chunk in each of `sets`, and streams.
class DeviceSide {
  public:
    DeviceSide(const Kernel &kernel, const flash::Problem &chunk, int sets, int stream_count) {
        const size_t workspace = kernel.workspace_bytes(chunk);
        for (int s = 0; s < sets; ++s) {
            Slice slice;
            for (uint16_t **tensor : {&slice.Q, &slice.K, &slice.V, &slice.O}) {
                *tensor = static_cast<uint16_t *>(allocate(chunk.q_elements() * sizeof(uint16_t)));
            }
            FlashParams one = chunk.params(slice.Q, slice.K, slice.V, slice.O);
            one.workspace = workspace ? allocate(workspace) : nullptr;
            one.workspace_bytes = workspace;
            slices.push_back(slice);
            params.push_back(one);
        }
        streams.resize(stream_count);
        for (cudaStream_t &stream : streams) {
            must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        }
    }
    ~DeviceSide() {
        for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    }
    std::vector<Slice> slices;
    std::vector<FlashParams> params;
    std::vector<cudaStream_t> streams;

  private:
    void *allocate(size_t bytes) {
        void *data = nullptr;
        must(cudaMalloc(&data, bytes), "device memory");
        owned_.emplace_back(data);
        return data;
    }
    std::vector<std::unique_ptr<void, FreeDevice>> owned_;
};

// What the batch's results are compared with: of every problem one head, of long sequences some of its rows.
class Checker {
  public:
    Checker(const flash::Problem &batch, const Slice &host)
        : batch_(batch), part_(batch), rows_(batch.Nq <= 128 ? batch.Nq : 16) {
        part_.B = part_.Hq = part_.Hkv = 1;
        part_.Nq = rows_;
        for (int b = 0; b < batch.B; ++b) {
            flash::Inputs inputs;
            inputs.Q = rows_of(host.Q, b);
            const size_t head = head_of(b), elements = size_t(batch.Nkv) * batch.d_head;
            inputs.K.assign(host.K + head, host.K + head + elements);
            inputs.V.assign(host.V + head, host.V + head + elements);
            references_.push_back(flash::reference(part_, inputs));
        }
    }
    // What is wrong, or "".
    std::string check(const Slice &host) const {
        const auto unwritten = std::count(host.O, host.O + batch_.q_elements(), flash::poison);
        const std::string missing =
            unwritten ? std::to_string(unwritten) + " numbers of the batch's O never came back" : "";
        for (int b = 0; b < batch_.B; ++b) {
            const flash::Comparison comparison = flash::compare(part_, rows_of(host.O, b), references_[b]);
            if (!comparison.passed) {
                return "problem " + std::to_string(b) + " of the batch: " + comparison.message +
                       (missing.empty() ? "" : "; " + missing);
            }
        }
        return missing;
    }

  private:
    // Where the head of problem b that is looked at begins.
    size_t head_of(int b) const {
        const size_t head = size_t(batch_.Nq) * batch_.d_head;
        return (size_t(b) * batch_.Hq + b % batch_.Hq) * head;
    }
    std::vector<uint16_t> rows_of(const uint16_t *tensor, int b) const {
        std::vector<uint16_t> rows;
        for (int i = 0; i < rows_; ++i) {
            const uint16_t *row = tensor + head_of(b) + size_t(i) * (batch_.Nq / rows_) * batch_.d_head;
            rows.insert(rows.end(), row, row + batch_.d_head);
        }
        return rows;
    }
    flash::Problem batch_, part_;
    int rows_;
    std::vector<flash::Reference> references_;
};

struct Run {
    const Variant *variant;
    int chunks, streams;
    std::string problem;  // what is wrong, or ""
    std::vector<double> ms;
    std::string spans;  // JSON
};

// Spans as JSON, in ms after the first event.
std::string spans_json(const Recorder &recorder) {
    std::string text;
    const auto &spans = recorder.spans();
    const auto since_first = [&](cudaEvent_t event) {
        float ms = 0;
        if (event != spans.front().start) must(cudaEventElapsedTime(&ms, spans.front().start, event), "elapsed time");
        return ms;
    };
    for (const Recorder::Span &span : spans) {
        char line[160];
        std::snprintf(line, sizeof line,
                      "%s{\"kind\": \"%s\", \"chunk\": %d, \"stream\": %d, \"start_ms\": %.4f, \"end_ms\": %.4f}",
                      text.empty() ? "" : ", ", span.kind, span.chunk, span.stream, since_first(span.start),
                      since_first(span.end));
        text += line;
    }
    for (const Recorder::Span &span : spans) {
        cudaEventDestroy(span.start);
        cudaEventDestroy(span.end);
    }
    return text;
}

Run run(const Options &options, const Variant &variant, int chunks, int streams, const Kernel &kernel,
        const Slice &host, const Checker &checker, bool simulated) {
    const flash::Problem &batch = options.problem;
    flash::Problem chunk = batch;
    chunk.B = batch.B / chunks;
    const bool engines = variant.run == by_engine;
    DeviceSide device(kernel, chunk, variant.uses_streams ? streams : 1,
                      engines                ? 3
                      : variant.uses_streams ? streams
                                             : 1);
    Work work;
    work.host = host;
    work.chunks = chunks;
    work.elements = chunk.q_elements();
    work.streams = device.streams;
    work.device = device.slices;
    work.attention = [&](int s, cudaStream_t stream) { kernel.launch(device.params[s], stream); };

    Run result{&variant, chunks, streams, "", {}, ""};
    const size_t elements = batch.q_elements();
    std::fill(host.O, host.O + elements, flash::poison);
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
    char times[160] = "null";
    if (!run.ms.empty()) {
        std::snprintf(times, sizeof times, "{\"median\": %.4f, \"p20\": %.4f, \"p80\": %.4f}", quantile(run.ms, 0.5),
                      quantile(run.ms, 0.2), quantile(run.ms, 0.8));
    }
    return std::string("{\"variant\": \"") + run.variant->name + "\", \"title\": \"" + run.variant->title +
           "\", \"memory\": \"" + (run.variant->pinned ? "pinned" : "pageable") +
           "\", \"chunks\": " + std::to_string(run.chunks) + ", \"streams\": " + std::to_string(run.streams) +
           ", \"passed\": " + (run.problem.empty() ? "true" : "false") + ", \"ms\": " + times + ", \"spans\": [" +
           run.spans + "]}";
}

// Every 32nd problem of the batch has numbers of its own, the others are those from another place on.
void fill(const flash::Problem &batch, const Slice &host) {
    flash::Problem one = batch;
    one.B = 1;
    const size_t elements = one.q_elements();
    flash::Inputs inputs;
    for (int b = 0; b < batch.B; ++b) {
        if (b % 32 == 0) inputs = flash::random_inputs(one, b + 1);
        const size_t shift = size_t(b % 32) * 977 % elements;
        const std::pair<uint16_t *, std::vector<uint16_t> *> tensors[] = {
            {host.Q, &inputs.Q}, {host.K, &inputs.K}, {host.V, &inputs.V}};
        for (auto [to, from] : tensors) {
            std::rotate_copy(from->begin(), from->begin() + shift, from->end(), to + b * elements);
        }
    }
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
    const char *separator = "";
    std::printf("[");
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
            std::printf("%s{\"memory\": \"%s\", \"direction\": \"%s\", \"gb_s\": %.2f}", separator,
                        pinned ? "pinned" : "pageable", direction, (in + out) * double(bytes) / times[4] / 1e9);
            separator = ", ";
        }
    }
    std::printf("]\n");
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
    std::string json;
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
                json += (json.empty() ? "" : ",\n") + to_json(result);
            }
        }
    }
    if (!options.json.empty()) {
        std::FILE *file = std::fopen(options.json.c_str(), "w");
        bool good =
            file &&
            std::fprintf(
                file, "{\"version\": 1, \"device\": \"%s\", \"stage\": %d, \"problem\": \"%s\", \"runs\": [\n%s\n]}\n",
                properties.name, options.stage, options.problem.text().c_str(), json.c_str()) > 0;
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
