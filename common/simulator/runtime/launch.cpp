#include "runtime/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "machine/core_ops.h"
#include "runtime/clusters.h"
#include "runtime/device_work.h"

namespace warpsim::rt {
namespace {

[[noreturn]] void refuse(const Kernel &kernel, cudaError_t code, const std::string &why) {
    say("launch of " + kernel.display_name + " refused: " + why);
    throw Failure{code};
}

void check_block(const Kernel &kernel, const Program &program, const LaunchRequest &request) {
    const dim3 &block = request.block;
    if (!block.x || !block.y || !block.z || block.x > 1024 || block.y > 1024 || block.z > 64 ||
        uint64_t{block.x} * block.y * block.z > kThreadsPerBlock) {
        refuse(kernel, cudaErrorInvalidConfiguration,
               "block " + dimensions(block) +
                   ": each dimension must be at least 1 and at most (1024, 1024, 64), and the "
                   "block has at most 1024 threads");
    }
    const unsigned threads = block.x * block.y * block.z;
    if (program.required_threads[0] &&
        (program.required_threads[0] != block.x || program.required_threads[1] != block.y ||
         program.required_threads[2] != block.z)) {
        const uint32_t *r = program.required_threads;
        refuse(kernel, cudaErrorInvalidValue,
               "block " + dimensions(block) + ": the kernel was compiled for " + dimensions({r[0], r[1], r[2]}));
    }
    if (threads > program.max_threads) {
        refuse(kernel, cudaErrorInvalidValue,
               std::to_string(threads) + " threads: __launch_bounds__ allows " + std::to_string(program.max_threads));
    }
}

void check_grid(const Kernel &kernel, const LaunchRequest &request) {
    const dim3 &grid = request.grid;
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
        refuse(
            kernel, cudaErrorInvalidConfiguration,
            "grid " + dimensions(grid) + ": each dimension must be at least 1 and at most (2147483647, 65535, 65535)");
    }
}

void check_shared(const Runtime &runtime, const Kernel &kernel, const Program &program, uint64_t dynamic) {
    const uint64_t total = block_shared_bytes(program, dynamic);
    if (total > runtime.profile.shared_per_block_optin) {
        refuse(kernel, cudaErrorInvalidValue,
               std::to_string(total) + " bytes of shared memory per block: " + runtime.profile.name + " has " +
                   std::to_string(runtime.profile.shared_per_block_optin));
    }
    const int limit = dynamic_shared_limit(kernel, program);
    if (dynamic > static_cast<uint64_t>(std::max(limit, 0))) {
        refuse(kernel, cudaErrorInvalidValue,
               std::to_string(dynamic) + " bytes of dynamic shared memory: the limit is " + std::to_string(limit) +
                   " until cudaFuncSetAttribute(..., cudaFuncAttributeMaxDynamicSharedMemorySize, ...) raises it");
    }
}

// The error that a GPU would give for what the simulator found.
cudaError_t code_of(const LaunchReport &report) {
    for (auto hazard = report.hazards.rbegin(); hazard != report.hazards.rend(); ++hazard) {
        switch (hazard->kind) {
            case HazardKind::out_of_bounds:
            case HazardKind::invalid_address:
                return cudaErrorIllegalAddress;
            case HazardKind::misaligned:
                return cudaErrorMisalignedAddress;
            case HazardKind::assertion:
                return cudaErrorAssert;
            case HazardKind::budget:
                return cudaErrorLaunchTimeout;
            case HazardKind::illegal_instruction:
                return cudaErrorIllegalInstruction;
            default:
                break;
        }
    }
    return cudaErrorLaunchFailure;
}

// Hazards are said once for each place, however many launches meet it.
bool is_news(const Kernel &kernel, const HazardRecord &hazard) {
    static std::set<std::string> said;  // under the runtime's lock
    return said
        .insert(kernel.name + '\n' + std::to_string(static_cast<int>(hazard.kind)) + '\n' + hazard.file + ':' +
                std::to_string(hazard.line) + (hazard.line ? "" : hazard.message))
        .second;
}

void print_output(const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

// A launch that has begun. It may pause while others run (Scheduler::pause).
struct Flight {
    Runtime &runtime;
    const Kernel &kernel;
    Program &program;
    std::vector<std::byte> parameters;
    LaunchConfig config;
    std::unique_ptr<Execution> execution;
    std::vector<DeviceWork> launched;  // by the kernel
};

bool executes(const Program &program, Handler handler) {
    return std::any_of(program.ops.begin(), program.ops.end(), [=](const Op &op) { return op.fn == handler; });
}

// Conflicts with other operations, as hazards of the launch.
void compare(Flight &flight, LaunchReport &report) {
    Runtime &runtime = flight.runtime;
    if (!flight.config.collects || !report.error.empty()) return;
    Touched touched = runtime.scheduler.touched("kernel " + flight.kernel.display_name);
    touched.all = flight.execution->touched();
    touched.before = flight.execution->touched_before();
    touched.triggers = executes(flight.program, exec_let_dependents_start);
    touched.waits = executes(flight.program, exec_wait_for_launches);
    // A thread of the host may wait for a flag that the kernel sets in the host's memory.
    constexpr unsigned kFlag = kGlobalWrites | kGlobalStrong | kGlobalSystem;
    const auto tells_the_host = [&](const Footprint::Piece &piece) {
        return (piece.flags & kFlag) == kFlag && !runtime.memory->is_device_address(piece.begin);
    };
    const std::vector<Footprint::Piece> &pieces = touched.all.pieces();
    if (std::any_of(pieces.begin(), pieces.end(), tells_the_host)) runtime.scheduler.learn(touched.mark);
    for (HazardRecord &hazard : runtime.order.add(runtime, std::move(touched))) {
        if (!runtime.options.hazards_warn && report.error.empty()) report.error = hazard.message;
        report.hazards.push_back(std::move(hazard));
    }
}

void finish(Flight &flight) {
    Runtime &runtime = flight.runtime;
    const Kernel &kernel = flight.kernel;
    const LaunchConfig &config = flight.config;
    LaunchReport report = flight.execution->report();
    std::fflush(stdout);
    report.kernel = kernel.display_name;
    std::copy(std::begin(config.grid), std::end(config.grid), report.grid);
    std::copy(std::begin(config.block), std::end(config.block), report.block);
    report.shared_bytes = static_cast<uint32_t>(block_shared_bytes(flight.program, config.dynamic_shared));
    compare(flight, report);
    runtime.reports.add(report);
    runtime.traces.add(report);
    std::string text;
    for (const HazardRecord &hazard : report.hazards) {
        if (is_news(kernel, hazard)) text += to_text(hazard);
    }
    const bool said_hazards = !text.empty();
    for (const HazardRecord &note : report.notes) {
        if (is_news(kernel, note)) text += to_text(note);
    }
    if (runtime.options.print_table) text += to_table(report, 20);
    if (!report.error.empty()) {
        const cudaError_t code = code_of(report);
        const dim3 grid{config.grid[0], config.grid[1], config.grid[2]};
        const dim3 block{config.block[0], config.block[1], config.block[2]};
        const std::string where =
            runtime.devices->count() > 1 ? " on device " + std::to_string(kernel.library->device) : "";
        text += "warpsim: " + kernel.display_name + "<<<" + dimensions(grid) + ", " + dimensions(block) + ", " +
                std::to_string(config.dynamic_shared) + ">>>" + where + " failed with " + cudaGetErrorName(code) +
                (said_hazards ? "" : ": " + report.error) + "\n";
        runtime.fail(code);
    }
    std::fwrite(text.data(), 1, text.size(), stderr);
    if (report.error.empty()) run_device_work(runtime, kernel, std::move(flight.launched));
}

void go_on(const std::shared_ptr<Flight> &flight, bool may_pause) {
    const Execution::State state = flight->execution->run(may_pause);
    if (state == Execution::State::over) return finish(*flight);
    flight->runtime.scheduler.pause({.undecided = state == Execution::State::undecided,
                                     .may_go_on = [flight] { return flight->execution->may_go_on(); },
                                     .resume = [flight](bool again) { go_on(flight, again); }});
}

void run(Runtime &runtime, const Kernel &kernel, Program &program, const LaunchConfig &config,
         const std::vector<std::byte> &parameters) {
    const unsigned device = kernel.library->device;
    auto flight = std::make_shared<Flight>(Flight{runtime, kernel, program, parameters, config, {}, {}});
    LaunchConfig &own = flight->config;
    own.parameters = flight->parameters.data();
    own.launched = [&launched = flight->launched](DeviceWork &&work) { launched.push_back(std::move(work)); };
    own.collects = runtime.scheduler.running().collects;
    own.overtakes = own.collects && !in_device_work() && runtime.scheduler.running().operation->overtakes;
    if (own.collects && program.communicates) {
        own.first_team = runtime.order.number_teams(uint64_t{own.grid[0]} * own.grid[1] * own.grid[2]);
        own.released_on_device = &runtime.order.released_on(device);
        own.released_to_system = &runtime.order.released_to_system();
    }
    flight->execution = std::make_unique<Execution>(program, runtime.devices->memory(device), own, runtime.options);
    go_on(flight, !in_device_work());
}

}  // namespace

unsigned model_registers(const Program &program, unsigned threads) {
    const unsigned fits = kRegistersPerMultiprocessor / std::max(1u, (threads + 31) / 32 * 32) / 8 * 8;
    return std::min({allotted_registers(program.registers), fits, kMaxRegistersPerThread});
}

uint64_t block_shared_bytes(const Program &program, uint64_t dynamic) {
    return dynamic ? program.dynamic_shared_offset + dynamic : program.static_shared;
}

int dynamic_shared_limit(const Kernel &kernel, const Program &program) {
    if (kernel.dynamic_shared_limit >= 0) return kernel.dynamic_shared_limit;
    return static_cast<int>(kSharedPerBlock) - static_cast<int>(program.static_shared);
}

Operation make_launch(Runtime &runtime, const LaunchRequest &request, const void *stub_or_handle,
                      void *const *arguments) {
    Kernel &kernel = *runtime.modules.find_kernel(stub_or_handle);
    Program &program = runtime.modules.program(kernel);
    check_block(kernel, program, request);
    check_grid(kernel, request);
    std::string why;
    const std::optional<dim3> cluster =
        cluster_of_launch(runtime.profile, kernel, program, request.grid, request.cluster, why);
    if (!cluster) refuse(kernel, cudaErrorInvalidClusterSize, why);
    check_shared(runtime, kernel, program, request.shared);
    const unsigned threads = request.block.x * request.block.y * request.block.z;
    const unsigned resident = resident_blocks(runtime.profile, threads, model_registers(program, threads),
                                              static_cast<uint32_t>(block_shared_bytes(program, request.shared)));
    const uint64_t blocks = uint64_t{request.grid.x} * request.grid.y * request.grid.z;
    if (request.cooperative && blocks > uint64_t{resident} * runtime.profile.multiprocessors) {
        refuse(kernel, cudaErrorCooperativeLaunchTooLarge,
               std::to_string(blocks) + " blocks in a cooperative launch: " + runtime.profile.name + " holds " +
                   std::to_string(resident) + " on each of " + std::to_string(runtime.profile.multiprocessors) +
                   " multiprocessors");
    }
    if (!program.parameters.empty() && !arguments) throw Failure{cudaErrorInvalidValue};
    std::vector<std::byte> parameters(std::max(program.parameter_bytes, 1u));
    for (size_t i = 0; i < program.parameters.size(); ++i) {
        if (!arguments[i]) throw Failure{cudaErrorInvalidValue};
        std::memcpy(parameters.data() + program.parameters[i].offset, arguments[i], program.parameters[i].bytes);
    }
    LaunchConfig config;
    const dim3 *const from[] = {&request.grid, &request.block, &*cluster};
    uint32_t *const to[] = {config.grid, config.block, config.cluster};
    for (int i = 0; i < 3; ++i) {
        to[i][0] = from[i]->x;
        to[i][1] = from[i]->y;
        to[i][2] = from[i]->z;
    }
    config.explicit_cluster = request.cluster.x || requires_cluster(kernel, program);
    config.dynamic_shared = static_cast<uint32_t>(request.shared);
    config.cooperative = request.cooperative;
    config.multiprocessors = runtime.profile.multiprocessors;
    config.resident_blocks = std::max(resident, 1u);
    config.stack_limit = runtime.stack_limit;
    config.print = print_output;
    config.pending_launches = runtime.pending_launch_limit;
    config.error_name = [](int code) { return cudaGetErrorName(static_cast<cudaError_t>(code)); };
    config.error_text = [](int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); };
    Operation operation;
    operation.is_launch = true;
    operation.overtakes = request.overtakes;
    operation.node_type = cudaGraphNodeTypeKernel;
    operation.what = {"kernel", kernel.display_name};
    // The kernel stays registered, but a reset of the device unloads its program: look it up again then.
    operation.run = [&runtime, &kernel, config, parameters = std::move(parameters)] {
        run(runtime, kernel, runtime.modules.program(kernel), config, parameters);
    };
    return operation;
}

cudaError_t launch_api(const LaunchRequest &request, const void *stub_or_handle, void **arguments) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(request.stream);
        runtime.reports.host.call("cudaLaunchKernel", stream->number());
        if (stream->device != current_device()) {
            say("launch refused: stream " + std::to_string(stream->number()) + " is of device " +
                std::to_string(stream->device) + ", and the current device is " + std::to_string(current_device()) +
                " (cudaSetDevice(" + std::to_string(stream->device) + ") before the launch)");
            throw Failure{cudaErrorInvalidResourceHandle};
        }
        try {
            runtime.scheduler.enqueue(stream, make_launch(runtime, request, stub_or_handle, arguments));
        } catch (const Failure &failure) {
            // A kernel that a GPU could run and the simulator cannot: later calls must not look as if it had run.
            if (failure.code == cudaErrorNotSupported || failure.code == cudaErrorInvalidPtx)
                runtime.fail(failure.code);
            throw;
        }
        return cudaSuccess;
    });
}

}  // namespace warpsim::rt
