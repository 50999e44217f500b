// Records what went wrong in a launch, in an order that does not depend on which host thread met it first; and what a
// message says of the waits that a thread has executed.
#include <algorithm>
#include <cctype>

#include "core/names.h"
#include "core/text.h"
#include "machine/cluster.h"
#include "machine/context.h"

namespace warpsim {

namespace {

constexpr size_t kMostRecords = 1000;
constexpr uint64_t kMostOutput = 256 << 20;  // of printf: what comes after it is lost

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
    for (; frame && frame->call && !program.debug[index].nearest.line; frame = frame->parent)
        index = frame->call->index;
    return program.debug[index].nearest.line ? index : op.index;
}

// Notes a hazard with the block; its message's text is made only once. Ends the block where the launch cannot go on.
void record(BlockContext &block, HazardKind kind, uint32_t op, const std::string &text, auto make, bool note = false) {
    LaunchShared &launch = *block.worker->launch;
    const auto [found, is_new] = block.found.try_emplace(std::make_tuple(kind, op, places_in(text)));
    HazardRecord &hazard = found->second;
    if (is_new) {
        make(hazard);
        hazard.count = 0;
    }
    ++hazard.count;
    if (block.asked && std::get<0>(*block.asked) == kind && std::get<1>(*block.asked) == op) {
        block.known[*block.asked] = &hazard;
    }
    block.asked.reset();
    if (note) return;
    if (!launch.options->hazards_warn || is_fatal(kind)) {
        HazardRecord last;
        make(last);
        block.failure = last.message;
        throw LaunchAborted{};
    }
    if (block.failure.empty()) check_time(block);  // reports take longer than instructions
}

}  // namespace

std::string triple(const uint32_t (&v)[3]) {
    return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

std::string place_text(const Program &program, uint32_t op, const HazardRecord &hazard) {
    const std::string calls = calls_text(hazard.inlined);
    return " [" + place(program, op) + (calls.empty() ? "" : ", " + calls) + ", kernel " + demangle(program.name) +
           ", block " + triple(hazard.block) + ", warp " + std::to_string(hazard.warp) +
           (hazard.lane >= 0 ? ", lane " + std::to_string(hazard.lane) : "") + "]";
}

void note_failure(LaunchShared &launch, uint64_t block, const std::string &message) {
    const std::lock_guard<std::mutex> lock(launch.mutex);
    launch.errors.emplace(block, message);
    if (launch.program->communicates) {
        launch.stopped = true;
    } else if (block < launch.first_failed.load()) {
        launch.first_failed = block;
    }
}

namespace {

// Guarded by the launch's mutex.
void add_to(LaunchShared &launch, uint64_t block, const std::string &places, const HazardRecord &hazard) {
    const auto [found, is_new] =
        launch.hazards.try_emplace(std::make_tuple(hazard.kind, hazard.file, hazard.line, places));
    KnownHazard &known = found->second;
    known.times[block] += hazard.count;
    if (is_new || block < known.block) {
        known.first = hazard;
        known.block = block;
    }
}

// over: nothing more will come of the block, or of its cluster.
void hand_in_one(LaunchShared &launch, BlockContext &b, bool over) {
    if (!b.found.empty()) {
        const std::lock_guard<std::mutex> lock(launch.mutex);
        for (auto &[key, hazard] : b.found) add_to(launch, b.linear_id, std::get<std::string>(key), hazard);
        b.found.clear();
        b.known.clear();
    }
    if (!b.failure.empty())
        note_failure(launch, last_of(launch, b.linear_id * launch.teams / launch.blocks), b.failure);
    if (!b.output.empty() && over) {
        const std::lock_guard<std::mutex> lock(launch.mutex);
        launch.output_bytes += b.output.size();
        if (launch.output_bytes <= kMostOutput) launch.outputs[b.linear_id] = std::move(b.output);
        b.output.clear();
    }
    if (!b.device_runtime.work.empty() && over) {
        const std::lock_guard<std::mutex> lock(launch.mutex);
        launch.device_work[b.linear_id] = std::move(b.device_runtime.work);
        b.device_runtime.work.clear();
    }
}

}  // namespace

void add_hazard(LaunchShared &launch, uint64_t block, HazardRecord hazard) {
    const std::lock_guard<std::mutex> lock(launch.mutex);
    add_to(launch, block, places_in(hazard.message), hazard);
}

void hand_in(LaunchShared &launch, BlockContext &first) {
    BlockContext *const block = &first;
    const bool over = is_over(first);
    for (BlockContext *b : team_of(block)) hand_in_one(launch, *b, over);
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

namespace {

// The record of what a lane met at an op.
auto maker(BlockContext &block, Warp &w, const Op &op, HazardKind kind, int lane, uint64_t address,
           const std::string &message) {
    const Program &whole = *block.worker->launch->program;
    return [&, kind, lane, address](HazardRecord &hazard) {
        hazard.kind = kind;
        const uint32_t at = op_with_line(w, op, whole);
        const OpDebug &debug = whole.debug[at];
        if (debug.nearest.line) hazard.file = file_name(whole, debug.nearest);
        if (!hazard.file.empty()) hazard.line = debug.nearest.line;
        hazard.inlined = calls_to(whole, debug.nearest);
        std::copy(block.ctaid, block.ctaid + 3, hazard.block);
        hazard.warp = w.id;
        hazard.lane = lane;
        hazard.address = address;
        hazard.message = message + place_text(whole, at, hazard);
    };
}

}  // namespace

void BlockContext::report(Warp &w, const Op &op, HazardKind kind, int lane, uint64_t address, std::string message) {
    BlockContext &own = *context_of(w).owner;
    if (this != &own) return own.report(w, op, kind, lane, address, std::move(message));  // a visit of a peer's memory
    record(*this, kind, op.index, message, maker(*this, w, op, kind, lane, address, message));
}

void report_and_end(WarpContext &w, const Op &op, HazardKind kind, int lane, uint64_t address,
                    const std::string &message) {
    report_hazard(w, op, kind, lane, address, message);
    HazardRecord last;
    maker(*w.owner, w, op, kind, lane, address, message)(last);
    w.owner->failure = last.message;
    throw LaunchAborted{};
}

void BlockContext::note(Warp &w, const Op &op, HazardKind kind, std::string message) {
    if (worker->launch->options->hazards_strict) return report(w, op, kind, -1, 0, std::move(message));
    const auto make = maker(*this, w, op, kind, -1, 0, message);
    record(
        *this, kind, op.index, message,
        [&](HazardRecord &hazard) {
            make(hazard);
            hazard.note = true;
        },
        true);
}

bool BlockContext::repeats(const Op &op, HazardKind kind, uint32_t other_op) {
    if (!worker->launch->options->hazards_warn || is_fatal(kind)) return false;
    const auto key = std::make_tuple(kind, op.index, other_op);
    const auto found = known.find(key);
    if (found == known.end()) {
        asked = key;
        return false;
    }
    ++found->second->count;
    return true;
}

void abort_launch(BlockContext &block, HazardKind kind, const std::string &message) {
    record(block, kind, kNoSlot, message, [&](HazardRecord &hazard) {
        hazard.kind = kind;
        std::copy(block.ctaid, block.ctaid + 3, hazard.block);
        hazard.message = message + " [kernel " + demangle(block.program->name) + ", block " + triple(block.ctaid) + "]";
    });
    throw LaunchAborted{};
}

namespace {

// The group that something belongs to, and what its thread has committed and waited for.
struct GroupState {
    uint64_t group = 0, committed = 0;  // how many were committed before it, and so far
    const Op *wait = nullptr;           // the thread's last one since; null: none
    uint64_t wait_committed = 0;        // at that wait
};

// As PTX has it: "`cp.async.wait_group 2` at kernel.cu:41".
std::string op_text(const Program &program, const Op &op) {
    const std::string &text = program.debug[op.index].text;
    const bool counts = text.find("wait_group") != std::string::npos;
    return "`" + text + (counts ? " " + std::to_string(op.imm) : "") + "` at " + where(program, op.index);
}

// 1: "newest", 2: "second newest".
std::string newest(uint64_t rank) {
    static constexpr const char *kNames[] = {"", "", "second ", "third ", "fourth ", "fifth "};
    return (rank < std::size(kNames) ? kNames[rank] : std::to_string(rank) + "th ") + "newest";
}

std::string newest_groups(uint64_t count) {
    static constexpr const char *kNames[] = {"no", "one", "two", "three", "four", "five"};
    const std::string number = count < std::size(kNames) ? kNames[count] : std::to_string(count);
    return "the newest " + (count == 1 ? std::string("group") : number + " groups");
}

// family: "cp.async", with .commit_group and .wait_group.
std::string text_of(const Program &program, const GroupState &state, const std::string &family, const std::string &who,
                    const std::string &needs) {
    const std::string commit = family + ".commit_group", wait = family + ".wait_group";
    if (state.committed <= state.group) {
        if (!state.wait) return who + " has executed neither a " + commit + " nor a " + wait + " since";
        return op_text(program, *state.wait) + " waits for committed groups, and " + who + " has executed no " +
               commit + " in between";
    }
    if (!state.wait)
        return who + " has executed no " + wait + " since; " + needs + " needs the " +
               newest(state.committed - state.group) + " of its groups";
    if (state.wait_committed <= state.group)
        return op_text(program, *state.wait) + " comes before the " + commit + " of " + who;
    return op_text(program, *state.wait) + " leaves " + newest_groups(uint64_t(state.wait->imm)) + " of " + who +
           " in flight, and " + needs + " needs the " + newest(state.wait_committed - state.group);
}

// An arrival behind copies by cp.async stands for the groups of what its lanes issued before.
const MbarrierArrival *arrival_behind(const Completions &all, unsigned warp, unsigned lane, uint64_t number) {
    for (const MbarrierArrival &arrival : all.arrivals)
        if (arrival.op->cls == OpClass::mbarrier && arrival.warp->id == warp && (arrival.lanes >> lane & 1) &&
            arrival.number > number)
            return &arrival;
    return nullptr;
}

std::string copy_text(BlockContext &block, unsigned warp, unsigned lane, uint32_t address, const std::string &who,
                      const std::string &needs) {
    const AsyncGroups &groups = block.arriving.groups[warp];
    const AsyncCopy *copy = nullptr;
    for (const AsyncCopy &one : groups.copies)
        if ((one.lanes >> lane & 1) && address + 3 >= one.to[lane] && address < one.to[lane] + one.bytes) copy = &one;
    if (!copy) return who + " has not waited for it";
    if (const MbarrierArrival *arrival = arrival_behind(block.arriving, warp, lane, copy->number))
        return "it completes to the mbarrier at shared " + hex(arrival->mbarrier) + " by the " +
               block.program->debug[arrival->op->index].text + " at " + where(*block.program, arrival->op->index) +
               " of " + who + ", and nobody has waited for that phase";
    GroupState state{copy->group[lane], groups.committed[lane]};
    if (groups.wait && (groups.wait_lanes >> lane & 1) && groups.wait_issued > copy->number) {
        state.wait = groups.wait;
        state.wait_committed = groups.wait_committed[lane];
    }
    return text_of(*block.program, state, "cp.async", who, needs);
}

std::string store_text(BlockContext &block, unsigned warp, unsigned lane, uint32_t transfer, const std::string &who,
                       const std::string &needs) {
    const Completions &all = block.arriving;
    for (const BulkStore &store : all.stores) {
        if (store.transfer != transfer || store.warp->id != warp || store.lane != lane) continue;
        const uint32_t thread = warp * kLanes + lane;
        GroupState state{store.group, all.bulk_groups[thread]};
        if (const auto found = all.bulk_waits.find(thread); found != all.bulk_waits.end()) {
            uint64_t latest = store.number;
            for (const GroupWait &wait : found->second) {
                if (!wait.op || wait.issued <= latest) continue;
                latest = wait.issued;
                state.wait = wait.op;
                state.wait_committed = wait.committed;
            }
        }
        if (store.waited && state.wait)
            return op_text(*block.program, *state.wait) + " of " + who +
                   " waits for its source alone, not for its "
                   "writes";
        return text_of(*block.program, state, "cp.async.bulk", who, needs);
    }
    return who + " has not waited for it";
}

std::string wgmma_text(BlockContext &block, unsigned warp_number, uint32_t reads, const std::string &who,
                       const std::string &needs) {
    if (!block.arriving.wgmma.used) return who + " has not waited for it";
    const WgmmaWarp &warp = block.arriving.wgmma.warps[warp_number];
    for (const WgmmaInFlight &one : warp.in_flight) {
        if (one.reads != reads) continue;
        GroupState state{one.group, warp.committed};
        if (warp.wait && warp.wait_reads >= reads) {
            state.wait = warp.wait;
            state.wait_committed = warp.wait_committed;
        }
        return text_of(*block.program, state, "wgmma", who, needs);
    }
    return who + " has not waited for it";
}

}  // namespace

std::string BlockContext::wait_text(Grouped kind, unsigned warp, unsigned lane, uint32_t which, const std::string &who,
                                    const std::string &needs) {
    switch (kind) {
        case Grouped::cp_async:
            return copy_text(*this, warp, lane, which, who, needs);
        case Grouped::bulk_store:
            return store_text(*this, warp, lane, which, who, needs);
        case Grouped::wgmma:
            return wgmma_text(*this, warp, which, who, needs);
    }
    return "";
}

uint32_t BlockContext::last_copy_wait(unsigned warp, unsigned lane) {
    const AsyncGroups &groups = arriving.groups[warp];
    return groups.wait && (groups.wait_lanes >> lane & 1) ? groups.wait->index : kNoSlot;
}

}  // namespace warpsim
