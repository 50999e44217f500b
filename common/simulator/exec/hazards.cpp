// Records what went wrong in a launch, in an order that does not depend on which host thread met it first.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "exec/context.h"
#include "exec/hazards.h"

namespace warpsim {

namespace {

constexpr size_t kMostRecords = 1000;

std::string triple(const uint32_t (&v)[3]) {
    return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

// Kinds after which the kernel cannot go on, whatever WARPSIM_HAZARDS says.
bool is_fatal(HazardKind kind) {
    switch (kind) {
        case HazardKind::deadlock:
        case HazardKind::trap:
        case HazardKind::assertion:
        case HazardKind::budget:
        case HazardKind::illegal_instruction:
            return true;
        default:
            return false;
    }
}

// "kernel.cu:12" and the like: what stays the same when a hazard repeats with other lanes and addresses.
std::string places_in(const std::string &message) {
    std::string places;
    for (size_t colon = message.find(':'); colon != std::string::npos; colon = message.find(':', colon + 1)) {
        size_t begin = colon, end = colon + 1;
        while (begin > 0 && !std::isspace(static_cast<unsigned char>(message[begin - 1])) && message[begin - 1] != '(')
            --begin;
        while (end < message.size() && std::isdigit(static_cast<unsigned char>(message[end]))) ++end;
        if (end > colon + 1) places += message.substr(begin, end - begin) + " ";
    }
    return places;
}

[[noreturn]] void fail(LaunchShared &launch, uint64_t block, const std::string &message) {
    {
        const std::lock_guard<std::mutex> lock(launch.mutex);
        launch.errors.emplace(block, message);
    }
    uint64_t first = launch.first_failed.load();
    while (block < first && !launch.first_failed.compare_exchange_weak(first, block)) {
    }
    launch.abort = true;
    throw LaunchAborted{};
}

void record(LaunchShared &launch, uint64_t block, HazardRecord hazard, const std::string &text) {
    const std::lock_guard<std::mutex> lock(launch.mutex);
    auto key = std::make_tuple(hazard.kind, hazard.file, hazard.line, places_in(text));
    const auto found = launch.known.find(key);
    if (found == launch.known.end()) {
        if (launch.hazards.size() >= kMostRecords) return;
        launch.known[key] = launch.hazards.size();
        launch.hazards.push_back(std::move(hazard));
        launch.hazard_blocks.push_back(block);
        return;
    }
    HazardRecord &known = launch.hazards[found->second];
    hazard.count = known.count + 1;
    if (block < launch.hazard_blocks[found->second]) {
        known = std::move(hazard);
        launch.hazard_blocks[found->second] = block;
    } else {
        ++known.count;
    }
}

}  // namespace

std::string demangle(const std::string &name) {
    int status = 0;
    char *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 && text ? text : name;
    std::free(text);
    return result;
}

std::string where(const Program &program, uint32_t index) {
    const OpDebug &debug = program.debug[index];
    if (!debug.source.line) return "PTX line " + std::to_string(debug.ptx_line);
    const auto file = program.module->ast.files.find(debug.source.file);
    std::string name = file == program.module->ast.files.end() ? "?" : file->second;
    return name.substr(name.find_last_of('/') + 1) + ":" + std::to_string(debug.source.line);
}

void report_hazard(Warp &w, const Op &op, HazardKind kind, int lane, uint64_t address, std::string message) {
    const BlockContext &block = *context_of(w).owner;
    LaunchShared &launch = *block.worker->launch;
    const Program &program = *launch.program;
    HazardRecord hazard;
    hazard.kind = kind;
    const OpDebug &debug = program.debug[op.index];
    if (const auto file = program.module->ast.files.find(debug.source.file);
        debug.source.line && file != program.module->ast.files.end()) {
        hazard.file = file->second;
        hazard.line = debug.source.line;
    }
    std::copy(block.ctaid, block.ctaid + 3, hazard.block);
    hazard.warp = w.id;
    hazard.lane = lane;
    hazard.address = address;
    const std::string text = message;
    hazard.message = std::move(message) + " [" + where(program, op.index) + ", kernel " + demangle(program.name) +
                     ", block " + triple(block.ctaid) + ", warp " + std::to_string(w.id) +
                     (lane >= 0 ? ", lane " + std::to_string(lane) : "") + "]";
    const std::string whole = hazard.message;
    record(launch, block.linear_id, std::move(hazard), text);
    if (!launch.options->hazards_warn || is_fatal(kind)) fail(launch, block.linear_id, whole);
}

void abort_launch(BlockContext &block, HazardKind kind, const std::string &message) {
    LaunchShared &launch = *block.worker->launch;
    HazardRecord hazard;
    hazard.kind = kind;
    std::copy(block.ctaid, block.ctaid + 3, hazard.block);
    hazard.message = message + " [kernel " + demangle(launch.program->name) + ", block " + triple(block.ctaid) + "]";
    const std::string whole = hazard.message;
    record(launch, block.linear_id, std::move(hazard), message);
    fail(launch, block.linear_id, whole);
}

}  // namespace warpsim
