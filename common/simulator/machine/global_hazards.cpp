#include "machine/global_hazards.h"

#include <algorithm>
#include <utility>

#include "core/names.h"
#include "hazard/global_conflicts.h"
#include "hazard/global_text.h"

namespace warpsim {

namespace {

struct Stopped {};  // a conflict has ended the launch

uint64_t team_of(const LaunchShared &launch, const GlobalConflicts::Side &side) {
    return side.team - launch.config->first_team;
}

uint64_t block_of(const LaunchShared &launch, const GlobalShadow &shadow, const GlobalConflicts::Side &side) {
    return team_of(launch, side) * (launch.blocks / launch.teams) + side.agent / shadow.warps_of_block();
}

std::string name_of(const LaunchShared &launch, uint64_t block) {
    uint32_t ctaid[3];
    block_place(*launch.config, block, ctaid);
    return triple(ctaid);
}

// Has what it did been released at some flag or counter?
bool is_released(const LaunchShared &launch, const GlobalConflicts::Side &side) {
    const LaunchConfig &config = *launch.config;
    const ReleasedAt &places = config.released_on_device ? *config.released_on_device : launch.conflicts->released;
    return std::any_of(places.begin(), places.end(), [&](const auto &place) {
        return knows(place.second, side.team, side.era, side.agent * kLanes + side.lane, side.stamp);
    });
}

HazardRecord record_of(const LaunchShared &launch, const GlobalShadow &shadow,
                       const GlobalConflicts::Conflict &conflict) {
    const Program &program = *launch.program;
    const GlobalConflicts::Side &now = conflict.now, &then = conflict.then;
    TwoBlocks both;
    both.now = {now.op, now.flags, now.agent, now.lane};
    both.then = {then.op, then.flags, then.agent, then.lane};
    both.now_block = name_of(launch, block_of(launch, shadow, now));
    both.then_block = name_of(launch, block_of(launch, shadow, then));
    both.warps_of_block = shadow.warps_of_block();
    both.both_read_and_write = conflict.both_read_and_write;
    both.same_value = conflict.same_value;
    both.noncoherent = conflict.noncoherent;
    both.communicates = program.communicates;
    both.released = is_released(launch, now.flags & kGlobalWrites ? now : then);
    HazardRecord record;
    record.kind = conflict.noncoherent ? HazardKind::noncoherent_read : HazardKind::global_race;
    const ptx::SourceLocation source = program.debug[now.op].nearest;
    if (source.line) record.file = file_name(program, source);
    if (!record.file.empty()) record.line = source.line;
    record.inlined = calls_to(program, source);
    block_place(*launch.config, block_of(launch, shadow, now), record.block);
    record.warp = now.agent % shadow.warps_of_block();
    record.lane = int(now.lane);
    record.address = conflict.address;
    record.count = 1;
    record.note = conflict.same_value && !launch.options->hazards_strict;
    record.message =
        text_between_blocks(program, *launch.memory, both, conflict.address) + place_text(program, now.op, record);
    return record;
}

void report(LaunchShared &launch, const GlobalShadow &shadow, const GlobalConflicts::Conflict &conflict) {
    HazardRecord record = record_of(launch, shadow, conflict);
    const uint64_t block = block_of(launch, shadow, conflict.now);
    const std::string message = record.message;
    const bool note = record.note;
    add_hazard(launch, block, std::move(record));
    if (note || launch.options->hazards_warn) return;
    note_failure(launch, last_of(launch, team_of(launch, conflict.now)), message);
    throw Stopped{};
}

void look(LaunchShared &launch, GlobalShadow &shadow) {
    try {
        launch.conflicts->hand_in(shadow, [&](const GlobalConflicts::Conflict &c) { report(launch, shadow, c); });
    } catch (const Stopped &) {
        shadow.handed_in();
    }
}

}  // namespace

void order_blocks(Warp &w, const Op &op, unsigned lane, uint64_t address, bool reads, bool writes) {
    LaunchShared &launch = *context_of(w).worker->launch;
    if (!launch.conflicts || !w.block->program->communicates || (op.extra & kTeamScope)) return;
    GlobalShadow &shadow = *w.block->global_shadow;
    if (writes) shadow.strong_write();
    launch.conflicts->strong_access(shadow.team(), reads, writes, shadow.published());
    const LaunchConfig &config = *launch.config;
    const GridOrder::Strong strong{.address = address,
                                   .reads = reads,
                                   .writes = writes,
                                   .acquire = bool(op.extra & kAcquire),
                                   .release = bool(op.extra & kRelease),
                                   .system = bool(op.extra & kSystemScope)};
    ReleasedAt &device = config.released_on_device ? *config.released_on_device : launch.conflicts->released;
    shadow.order().access(w.agent, lane, strong, device, config.released_to_system);
}

void finished_block(LaunchShared &launch, uint64_t n, std::unique_ptr<GlobalShadow> shadow) {
    if (!launch.conflicts) return;
    std::unique_lock<std::mutex> lock(launch.conflicts_mutex);
    launch.finished[n] = std::move(shadow);
    if (launch.looking) return;  // another host thread gets to it
    launch.looking = true;
    for (auto next = launch.finished.begin(); next != launch.finished.end() && next->first == launch.looked_at;
         next = launch.finished.begin()) {
        std::unique_ptr<GlobalShadow> touched = std::move(next->second);
        launch.finished.erase(next);
        lock.unlock();
        if (touched) look(launch, *touched);
        lock.lock();
        if (touched) launch.free_shadows.push_back(std::move(touched));
        ++launch.looked_at;
    }
    launch.looking = false;
}

void hand_in_accesses(LaunchShared &launch, GlobalShadow &shadow) {
    if (launch.conflicts) look(launch, shadow);
}

void forget_accesses(Warp &w, uint64_t address, uint64_t bytes) {
    GlobalShadow *const shadow = w.block->global_shadow;
    if (!shadow || !address) return;
    shadow->forget(address, bytes);
    LaunchShared &launch = *context_of(w).worker->launch;
    if (launch.conflicts) launch.conflicts->forget(address, bytes, shadow->line_shift());
}

}  // namespace warpsim
