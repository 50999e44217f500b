// Runs random kernels and compares what they leave with the host's computation, in two schedules and on one and two
// host threads. An input is a line "seed N"; the PTX is printed where it goes wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "fuzz.h"
#include "kernels.h"
#include "lower/module.h"
#include "machine/launch.h"
#include "memory/global_memory.h"
#include "report/report.h"

namespace fuzz {
namespace {

using namespace warpsim;

constexpr uint64_t kMostInstructions = 1 << 22;

[[noreturn]] void wrong(const Kernel &kernel, const Options &options, const std::string &why) {
    std::fprintf(stderr, "fuzz: WARPSIM_SCHEDULE=%llu WARPSIM_THREADS=%u, %u blocks of %u threads: %s\n%s",
                 static_cast<unsigned long long>(options.schedule_seed), options.threads, kernel.grid, kernel.block,
                 why.c_str(), ptx_of(kernel).c_str());
    std::abort();
}

template <class T>
uint64_t copy_in(GlobalMemory &memory, const std::vector<T> &data) {
    const uint64_t address = memory.allocate(data.size() * sizeof(T), MemoryKind::device);
    if (!address) throw std::runtime_error("no device memory");
    std::memcpy(memory.find(address)->host, data.data(), data.size() * sizeof(T));
    return address;
}

template <class T>
void compare(const char *what, const GlobalMemory &memory, uint64_t address, const std::vector<T> &wanted,
             unsigned each, const std::function<void(const std::string &)> &fail) {
    std::vector<T> got(wanted.size());
    std::memcpy(got.data(), memory.find(address)->host, got.size() * sizeof(T));
    for (size_t i = 0; i < got.size(); ++i) {
        if (got[i] == wanted[i]) continue;
        char text[160];
        std::snprintf(text, sizeof text, "%s of thread %zu, number %zu: 0x%x, and 0x%x on the host", what, i / each,
                      i % each, unsigned{got[i]}, unsigned{wanted[i]});
        fail(text);
    }
}

// Returns the report, as JSON.
std::string check(const Kernel &kernel, const Memory &before, const Memory &after, const Options &options) {
    GlobalMemory memory(64 << 20);
    const auto fail = [&](const std::string &why) { wrong(kernel, options, why); };
    try {
        const std::unique_ptr<LoadedModule> module = load_module(ptx_of(kernel), memory);
        Program &program = *find_kernel(*module, "k");
        const uint64_t addresses[] = {copy_in(memory, before.inputs), copy_in(memory, before.bins),
                                      copy_in(memory, before.rows), copy_in(memory, before.out)};
        LaunchConfig config;
        config.grid[0] = kernel.grid;
        config.block[0] = kernel.block;
        config.cluster[0] = kernel.cluster;
        config.explicit_cluster = kernel.cluster > 1;
        config.parameters = reinterpret_cast<const std::byte *>(addresses);
        const LaunchReport report = execute(program, memory, config, options);
        if (!report.hazards.empty()) fail("a hazard that is none: " + report.hazards.front().message);
        if (!report.error.empty()) fail(report.error);
        compare("the variable", memory, addresses[3], after.out, kVariables, fail);
        compare("the sum", memory, addresses[1], after.bins, kBins, fail);
        compare("the byte of the row", memory, addresses[2], after.rows, kRow, fail);
        return launch_json(report);
    } catch (const std::runtime_error &error) {
        fail(error.what());
    }
    return {};
}

void run(const Bytes &input) {
    if (input.rfind("seed ", 0) != 0) throw std::runtime_error("an input is a line such as \"seed 7\"");
    const uint64_t seed = std::strtoull(input.c_str() + 5, nullptr, 10);
    const Kernel kernel = make_kernel(seed);
    Random random(~seed);
    const size_t threads = size_t{kernel.grid} * kernel.block;
    Memory before{std::vector<uint32_t>(threads * kInputs), std::vector<uint32_t>(kBins),
                  std::vector<uint8_t>(threads * kRow), std::vector<uint32_t>(threads * kVariables)};
    // Edges, small numbers, floats near 1, anything.
    for (uint32_t &word : before.inputs) {
        const uint64_t any = random.next(), ways[] = {edge_number(random), any % 16, 0x3f000000 + any % 0x1000000, any};
        word = static_cast<uint32_t>(ways[random.below(4)]);
    }
    Memory after = before;
    run_on_host(kernel, after);
    Options options;
    options.max_instructions = kMostInstructions;
    options.timeout_s = 0;
    for (const uint64_t schedule : {uint64_t{0}, seed | 1}) {
        std::string reports[2];
        for (unsigned threads_used : {1u, 2u}) {
            options.schedule_seed = schedule;
            options.threads = threads_used;
            reports[threads_used - 1] = check(kernel, before, after, options);
        }
        if (reports[0] != reports[1]) wrong(kernel, options, "the report depends on the number of threads");
    }
}

Bytes make(Random &random) {
    return "seed " + std::to_string(random.next()) + '\n';
}

}  // namespace

const Target kKernels = {"kernels", "kernel", run, nullptr, make};

}  // namespace fuzz
