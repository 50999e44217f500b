// Records what went wrong in a launch, in an order that does not depend on which host thread met it first.
#include <algorithm>
#include <cctype>

#include "core/names.h"
#include "exec/context.h"

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

// The op itself, or, where it is in a function without source lines (assert's own, with -G), the call that led there.
uint32_t op_with_line(Warp &w, const Op &op, const Program &program) {
    uint32_t index = op.index;
    const WarpContext &context = context_of(w);
    const Frame *frame = nullptr;
    for (uint32_t i = 0; i < context.count && !frame; ++i) {
        for (frame = context.fragments[i].frame; frame && frame->regs != w.regs;) frame = frame->parent;
    }
    // What waited for the end of the block is told when the warp is elsewhere.
    const Program::Function *function = nullptr;
    for (const Program::Function &f : program.functions)
        if (f.entry <= index && (!function || f.entry > function->entry)) function = &f;
    if (frame && frame->function != function) return index;
    for (; frame && frame->call && !program.debug[index].source.line; frame = frame->parent) index = frame->call->index;
    return program.debug[index].source.line ? index : op.index;
}

[[noreturn]] void fail(LaunchShared &launch, uint64_t block, const std::string &message) {
    note_failure(launch, block, message);
    throw LaunchAborted{};
}

void record(LaunchShared &launch, uint64_t block, HazardRecord hazard, const std::string &text) {
    const std::lock_guard<std::mutex> lock(launch.mutex);
    const auto [found, is_new] =
        launch.hazards.try_emplace(std::make_tuple(hazard.kind, hazard.file, hazard.line, places_in(text)));
    KnownHazard &known = found->second;
    if (is_new || block < known.block) {
        known.first = std::move(hazard);
        known.block = block;
    }
    ++known.times[block];
}

}  // namespace

void note_failure(LaunchShared &launch, uint64_t block, const std::string &message) {
    const std::lock_guard<std::mutex> lock(launch.mutex);
    launch.errors.emplace(block, message);
    if (block < launch.first_failed.load()) launch.first_failed = block;
}

std::vector<HazardRecord> collect_hazards(LaunchShared &launch) {
    std::vector<KnownHazard *> order;
    const uint64_t last = launch.first_failed.load();
    for (auto &[key, known] : launch.hazards) {
        if (known.block > last) continue;
        known.first.count = 0;
        for (const auto &[block, times] : known.times) known.first.count += block <= last ? times : 0;
        order.push_back(&known);
    }
    std::stable_sort(order.begin(), order.end(), [](const KnownHazard *a, const KnownHazard *b) {
        const HazardRecord &ra = a->first, &rb = b->first;
        return std::tie(a->block, ra.warp, ra.file, ra.line, ra.kind, ra.message) <
               std::tie(b->block, rb.warp, rb.file, rb.line, rb.kind, rb.message);
    });
    order.resize(std::min(order.size(), kMostRecords));
    std::vector<HazardRecord> result;
    for (KnownHazard *known : order) result.push_back(std::move(known->first));
    return result;
}

void BlockContext::report(Warp &w, const Op &op, HazardKind kind, int lane, uint64_t address, std::string message) {
    const BlockContext &block = *this;
    LaunchShared &launch = *block.worker->launch;
    const Program &program = *launch.program;
    HazardRecord hazard;
    hazard.kind = kind;
    const uint32_t place = op_with_line(w, op, program);
    const OpDebug &debug = program.debug[place];
    if (debug.source.line) hazard.file = file_name(program, debug.source);
    if (!hazard.file.empty()) hazard.line = debug.source.line;
    std::copy(block.ctaid, block.ctaid + 3, hazard.block);
    hazard.warp = w.id;
    hazard.lane = lane;
    hazard.address = address;
    const std::string text = message;
    hazard.message = std::move(message) + " [" + where(program, place) + ", kernel " + demangle(program.name) +
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
