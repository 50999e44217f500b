#include "runtime/launch_order.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>

#include "hazard/global_text.h"
#include "report/report.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

uint64_t Clock::at(uint32_t lane) const {
    const auto found =
        std::lower_bound(steps_.begin(), steps_.end(), lane, [](const auto &s, uint32_t l) { return s.first < l; });
    return found != steps_.end() && found->first == lane ? found->second : 0;
}

void Clock::advance(uint32_t lane, uint64_t step) {
    const auto found =
        std::lower_bound(steps_.begin(), steps_.end(), lane, [](const auto &s, uint32_t l) { return s.first < l; });
    if (found != steps_.end() && found->first == lane) {
        found->second = std::max(found->second, step);
    } else {
        steps_.insert(found, {lane, step});
    }
}

void Clock::join(const Clock &other) {
    for (const auto &[lane, step] : other.steps_) advance(lane, step);
}

namespace {

constexpr size_t kMostKept = 4096;  // operations: then the oldest are forgotten, and conflicts with them may be missed

std::string stream_text(const Runtime &runtime, const Touched &side) {
    const std::string text = side.is_default ? "the default stream" : "stream " + std::to_string(side.stream);
    return runtime.options.devices > 1 ? text + " of device " + std::to_string(side.device) : text;
}

std::string by_text(const Runtime &runtime, const Touched &side) {
    return side.name + " in " + stream_text(runtime, side);
}

// By which programmatic dependent launch the later one may begin before the earlier one is over.
enum class Overtakes : uint8_t { no, itself, another };

// What orders the two, in one sentence.
std::string way_out(const Touched &later, const Touched &earlier, const Footprint::Conflict &conflict,
                    Overtakes overtakes) {
    if (overtakes == Overtakes::another)
        return "Between them in the stream is a programmatic dependent launch that waits for nothing, so that it may "
               "be over before the first one is, and what comes after waits for it alone: each dependent launch must "
               "execute cudaGridDependencySynchronize() (griddepcontrol.wait)";
    if (overtakes == Overtakes::itself)
        return "The launch has the attribute of programmatic dependent launches, so that it may begin before the "
               "launch "
               "before it in the stream is over: cudaGridDependencySynchronize() (griddepcontrol.wait) in front of the "
               "access waits for that";
    const bool devices = later.device != earlier.device;
    if (devices && conflict.other_scope)
        return "Both are atomic, but in the scope of their own device: those of system scope (atomicAdd_system(), "
               "cuda::thread_scope_system) are of one piece for both devices";
    if (later.is_free || earlier.is_free)
        return "cudaFreeAsync in the stream that uses the memory, or in one that waits for an event behind that "
               "(cudaEventRecord, cudaStreamWaitEvent), frees it when it is no longer needed";
    if (later.is_allocation || earlier.is_allocation)
        return "The memory is there once the stream has come to its allocation: the stream that uses it must wait for "
               "an event behind that (cudaEventRecord, cudaStreamWaitEvent)";
    if (later.in_graph && earlier.in_graph && later.mark.lane != earlier.mark.lane && later.stream == earlier.stream)
        return "They are in branches of a graph: an edge between the two nodes orders them (in a capture an event)";
    std::string text = "cudaEventRecord behind the first and cudaStreamWaitEvent in front of the second order them";
    if (!devices) text += ", and so does one stream for both";
    if (later.is_default != earlier.is_default && (later.non_blocking || earlier.non_blocking))
        text += "; the default stream and one that is made with cudaStreamNonBlocking do not wait for each other";
    if (devices && later.is_launch && earlier.is_launch)
        text +=
            "; flags between devices need system scope (__threadfence_system(), cuda::thread_scope_system) on both "
            "sides";
    if (later.is_launch != earlier.is_launch)
        text +=
            "; a kernel under way can learn it by a flag of at most 8 bytes that the stream writes next and that the "
            "kernel reads at system scope (cuStreamWriteValue32 or a copy; ld.acquire.sys)";
    return text;
}

HazardRecord record_of(const Runtime &runtime, const Touched &later, const Touched &earlier,
                       const Footprint::Conflict &conflict, const Footprint &touched, Overtakes overtakes) {
    const Footprint::Access &here = touched.access(*conflict.mine), &there = earlier.all.access(*conflict.theirs);
    HazardRecord record;
    record.kind = HazardKind::launch_race;
    const Footprint::Access &named = here.line ? here : there;
    record.file = named.file;
    record.line = named.line;
    record.address = conflict.address;
    const bool launches = later.is_launch && earlier.is_launch;
    record.message = here.text + " by " + by_text(runtime, later) + " of global memory that " +
                     by_text(runtime, earlier) + " " + there.did + ", " +
                     allocation_text(*runtime.memory, conflict.address) + ": nothing orders the two" +
                     (launches ? " launches. " : ". ") + way_out(later, earlier, conflict, overtakes);
    return record;
}

// An element that a thread can read in one piece: no thread sees a part of it.
bool is_element(const TouchedRegion &region) {
    return region.writes && region.rows == 1 && region.planes == 1 && region.width <= 8 &&
           std::has_single_bit(region.width) && region.address % region.width == 0;
}

// Each is said once, however often it happens.
bool is_news(const HazardRecord &hazard) {
    static std::set<std::string> said;  // under the runtime's lock
    return said.insert(hazard.file + ':' + std::to_string(hazard.line) + (hazard.line ? "" : hazard.message)).second;
}

}  // namespace

bool LaunchOrder::has_unordered(const Mark &mark) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](const Touched &t) { return !mark.follows(t.mark); });
}

const Touched *LaunchOrder::find(const Mark &mark) const {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Touched &t) {
        return t.mark.lane == mark.lane && t.mark.step == mark.step;
    });
    return found == kept_.end() ? nullptr : &*found;
}

// Launches that may still run when the one before `done` is over, since that one has waited for nothing.
std::vector<const Touched *> LaunchOrder::not_awaited(const Touched &done) const {
    std::vector<const Touched *> launches;
    const Touched *before = done.overtakes ? find(done.overtaken) : nullptr;
    while (before && before->overtakes && !before->waits) {
        before = find(before->overtaken);
        if (before && before->triggers) launches.push_back(before);
    }
    return launches;
}

std::vector<HazardRecord> LaunchOrder::add(const Runtime &runtime, Touched done) {
    std::vector<HazardRecord> hazards;
    const std::vector<const Touched *> unfinished = not_awaited(done);
    const auto nothing = [](const Knowledge &, bool) { return false; };
    for (const Touched &other : kept_) {
        const bool same_device = done.device == other.device;
        // A kernel and what it launched: one operation, whose parts have their own order.
        if (done.mark.lane == other.mark.lane && done.mark.step == other.mark.step) continue;
        if (!done.mark.follows(other.mark) && !other.mark.follows(done.mark)) {
            // What is said does not depend on which of them ran first.
            const bool done_is_later = done.order > other.order;
            const Touched &later = done_is_later ? done : other, &earlier = done_is_later ? other : done;
            // What was freed is given again when it is free; of memory's first use and its free the uses tell.
            if ((earlier.is_free && later.is_allocation) || (earlier.is_allocation && later.is_free)) continue;
            const Footprint::Told knows = [&](const Knowledge &known, bool of_later) {
                return told(known, of_later ? later.mark : earlier.mark);
            };
            for (const Footprint::Conflict &conflict : later.all.conflicts(earlier.all, same_device, knows))
                hazards.push_back(record_of(runtime, later, earlier, conflict, later.all, Overtakes::no));
        } else if (done.overtakes && other.triggers && done.overtaken.lane == other.mark.lane &&
                   done.overtaken.step == other.mark.step) {
            // A launch that never lets others begin is over when they do (PTX manual, griddepcontrol).
            for (const Footprint::Conflict &conflict : done.before.conflicts(other.all, same_device, nothing))
                hazards.push_back(record_of(runtime, done, other, conflict, done.before, Overtakes::itself));
        } else if (std::find(unfinished.begin(), unfinished.end(), &other) != unfinished.end()) {
            for (const Footprint::Conflict &conflict : done.all.conflicts(other.all, same_device, nothing))
                hazards.push_back(record_of(runtime, done, other, conflict, done.all, Overtakes::another));
        }
    }
    done.before = {};
    if (!done.all.empty() || done.overtakes) kept_.push_back(std::move(done));
    if (kept_.size() > kMostKept) kept_.erase(kept_.begin(), kept_.begin() + kMostKept / 2);
    return hazards;
}

void LaunchOrder::add_regions(Runtime &runtime, Touched done, const std::vector<TouchedRegion> &regions) {
    for (const TouchedRegion &region : regions) {
        const char *const did = done.is_free         ? "freed"
                                : done.is_allocation ? "allocated"
                                : region.writes      ? "wrote"
                                                     : "read";
        const char *const text = done.is_free         ? "free"
                                 : done.is_allocation ? "allocation"
                                 : region.writes      ? "write"
                                                      : "read";
        const uint32_t access = done.all.add_access({text, did, {}, 0, region.fill});
        const bool sets_flag = is_element(region) && !done.is_free && !done.is_allocation;
        for (uint64_t plane = 0; plane < region.planes; ++plane) {
            for (uint64_t row = 0; row < region.rows; ++row) {
                const uint64_t begin = region.address + plane * region.plane + row * region.pitch;
                const unsigned flags = sets_flag ? kStreamFlag : region.writes ? kGlobalWrites : 0;
                done.all.add(begin, begin + region.width, flags, access);
            }
        }
        if (sets_flag) set_flag(done.mark, region.address);
    }
    done.all.finish();
    LaunchReport report;
    report.kernel = done.name;
    report.hazards = add(runtime, std::move(done));
    if (!report.hazards.empty()) tell(runtime, std::move(report));
}

void tell(Runtime &runtime, LaunchReport report) {
    std::string text;
    for (const HazardRecord &hazard : report.hazards)
        if (is_news(hazard)) text += to_text(hazard);
    if (!runtime.options.hazards_warn) {
        report.error = report.hazards.front().message;
        text += "warpsim: " + report.kernel + " failed with " + cudaGetErrorName(cudaErrorLaunchFailure) + "\n";
    }
    runtime.reports.add(report);
    std::fflush(stdout);
    std::fwrite(text.data(), 1, text.size(), stderr);
    if (!runtime.options.hazards_warn) throw Failure{cudaErrorLaunchFailure};
}

void LaunchOrder::forget(const std::function<bool(const Mark &)> &is_ordered_with_all, bool nothing_runs) {
    if (kept_.empty() && released_later_.empty()) return;
    std::erase_if(released_later_, [&](const auto &release) {
        if (!is_ordered_with_all(release.second)) return false;
        Runtime::get()->memory->release(release.first);
        return true;
    });
    std::erase_if(kept_, [&](const Touched &t) { return is_ordered_with_all(t.mark); });
    if (kept_.empty() && nothing_runs) forget_released();
}

// The operation stands as a team of one thread in what others know.
void LaunchOrder::set_flag(const Mark &mark, uint64_t address) {
    const uint64_t team = number_teams(1);
    flags_.emplace(team, mark);
    const auto stamps = std::make_shared<Clocks::Vector>(1);
    Knowledge &place = released_to_system_[address];
    place = joined(place, std::make_shared<std::vector<Reach>>(1, Reach{team, 0, stamps}));
}

bool LaunchOrder::told(const Knowledge &known, const Mark &of) const {
    if (!known || flags_.empty()) return false;
    return std::any_of(known->begin(), known->end(), [&](const Reach &reach) {
        const auto flag = flags_.find(reach.team);
        return flag != flags_.end() && flag->second.follows(of);
    });
}

bool LaunchOrder::release_later(const Mark &mark, uint64_t address) {
    return released_later_.try_emplace(address, mark).second;
}

void LaunchOrder::forget_released() {
    for (ReleasedAt &released : released_) released.clear();
    released_to_system_.clear();
    flags_.clear();
}

void LaunchOrder::clear() {
    kept_.clear();
    released_later_.clear();
    forget_released();
}

}  // namespace warpsim::rt
