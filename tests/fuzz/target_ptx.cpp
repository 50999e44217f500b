// Parses, lowers and runs PTX, whatever it is, within small budgets.
#include <cstring>
#include <stdexcept>

#include "core/tensor_map.h"
#include "fuzz.h"
#include "lower/module.h"
#include "machine/launch.h"
#include "memory/global_memory.h"
#include "ptx/parser.h"
#include "report/report.h"

namespace fuzz {
namespace {

using namespace warpsim;

constexpr uint64_t kDeviceMemory = 64 << 20, kBufferBytes = 4096, kMostInstructions = 3000;
constexpr uint32_t kMostShared = 227 << 10;  // what a launch through the runtime may have at most
constexpr unsigned kMostKernels = 8;         // of one text
constexpr uint64_t kMostCluster = 8;         // blocks

// Parameters of 8 bytes get a buffer's address, others the number 3.
std::vector<std::byte> parameters_of(const Program &program, uint64_t buffer) {
    std::vector<std::byte> bytes(std::max(program.parameter_bytes, 1u));
    for (const Program::Parameter &parameter : program.parameters) {
        const uint64_t value = parameter.bytes == 8 ? buffer : 3;
        std::memcpy(bytes.data() + parameter.offset, &value, std::min<size_t>(parameter.bytes, sizeof value));
    }
    return bytes;
}

// A map of the buffer's first half as 16 rows of 32 floats, boxes of 8 of them. It lies where the second half begins.
void put_map(std::byte *host, uint64_t buffer) {
    TensorMap map;
    map.address = buffer;
    map.dimensions = 2;
    map.size = {32, 16};
    map.stride = {0, 128};
    map.box = {32, 8};
    map.step = {1, 1};
    map.type = TensorType::f32;
    map.swizzle = TensorSwizzle::bytes_128;
    encode_tensor_map(map, host + kBufferBytes / 2);
}

void launch(Program &program, GlobalMemory &memory) {
    LaunchConfig config;
    config.grid[0] = 2;
    config.block[0] = std::min(40u, program.max_threads);
    if (program.required_threads[0]) std::copy_n(program.required_threads, 3, config.block);
    if (program.required_cluster[0]) {  // one cluster, of no more blocks than the runtime takes
        std::copy_n(program.required_cluster, 3, config.cluster);
        std::copy_n(config.cluster, 3, config.grid);
        config.explicit_cluster = true;
        const uint64_t blocks = uint64_t{config.cluster[0]} * config.cluster[1];
        if (blocks > kMostCluster || blocks * config.cluster[2] > kMostCluster) return;
    }
    if (uint64_t{config.block[0]} * config.block[1] * config.block[2] > program.max_threads) return;
    config.dynamic_shared = 1024;
    if (program.dynamic_shared_offset > kMostShared - config.dynamic_shared) return;
    config.stack_limit = 1024;
    const uint64_t buffer = memory.allocate(kBufferBytes, MemoryKind::device);
    if (!buffer) return;
    std::memset(memory.find(buffer)->host, 0, kBufferBytes);
    put_map(memory.find(buffer)->host, buffer);
    const std::vector<std::byte> parameters = parameters_of(program, buffer);
    config.parameters = parameters.data();
    Options options;
    options.threads = 1;
    options.hazards_warn = true;
    options.max_instructions = kMostInstructions;
    options.timeout_s = 0;
    const LaunchReport report = execute(program, memory, config, options);
    to_table(report, 20);
    for (const HazardRecord &hazard : report.hazards) to_text(hazard);
    launch_json(report);
    memory.release(buffer);
}

void run(const Bytes &input) {
    GlobalMemory memory(kDeviceMemory);
    try {
        const std::unique_ptr<LoadedModule> module = load_module(input, memory);
        unsigned kernels = 0;
        for (const ptx::Function &function : module->ast.functions) {
            if (!function.is_entry || function.is_declaration || ++kernels > kMostKernels) continue;
            try {
                launch(*find_kernel(*module, function.name), memory);
            } catch (const std::runtime_error &) {  // what this kernel needs is not there, and it was said
            }
        }
    } catch (const std::runtime_error &) {
    }
}

}  // namespace

const Target kPtx = {"ptx", "ptx", run, mutate_ptx, nullptr};

}  // namespace fuzz
