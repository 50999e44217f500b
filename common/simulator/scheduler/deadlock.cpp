#include "scheduler/standstill.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>

#include "core/names.h"
#include "core/text.h"
#include "machine/cluster.h"
#include "machine/core_ops.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

using std::to_string;

constexpr size_t kMostListed = 6;  // causes
constexpr size_t kMostRanges = 4;  // "0 to 3, 5 and 8 to 9"

std::string op_text(const Program &program, uint32_t op) {
    return program.debug[op].text + " (" + where(program, op) + ")";
}

// "3", "0 to 3", "0 to 3 and 5", with a limit; "66 in all" behind more than that.
std::string ranges_text(const std::set<uint64_t> &numbers) {
    std::vector<std::string> ranges;
    for (auto at = numbers.begin(); at != numbers.end();) {
        const uint64_t first = *at;
        uint64_t last = first;
        while (++at != numbers.end() && *at == last + 1) last = *at;
        ranges.push_back(to_string(first) + (last == first ? "" : " to " + to_string(last)));
    }
    const bool all = ranges.size() <= kMostRanges;
    std::string text;
    for (size_t i = 0; i < std::min(ranges.size(), kMostRanges); ++i)
        text += (i == 0 ? "" : all && i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
    return text + (all ? "" : " ... (" + to_string(numbers.size()) + " in all)");
}

std::string numbered(const char *noun, const std::set<uint64_t> &numbers) {
    return std::string(noun) + (numbers.size() > 1 ? "s " : " ") + ranges_text(numbers);
}

// What some fragments wait for, and which ones.
struct Cause {
    std::string what;
    WarpContext *warp = nullptr;  // the first of them
    Fragment fragment;
    uint32_t op = kNoSlot;
    unsigned lane = 0;
    uint64_t address = 0;
    std::set<uint64_t> blocks, ranks, warps;  // warps: numbers in their blocks
    uint64_t warp_count = 0, threads = 0;
    uint32_t lanes = 0;
    bool same_lanes = true;

    void add(const WarpContext &w, const Fragment &f) {
        const BlockContext &block = *w.owner;
        same_lanes = same_lanes && (!warp_count || lanes == f.mask);
        lanes = f.mask;
        blocks.insert(block.linear_id);
        ranks.insert(block.rank);
        warps.insert(w.id);
        ++warp_count;
        threads += uint32_t(std::popcount(f.mask));
    }
    std::string who(bool grid, bool cluster) const {
        std::string text;
        if (grid) text = numbered("block", blocks) + ", ";
        if (cluster) text = numbered("block", ranks) + " of the cluster, ";
        return text + numbered("warp", warps) + ", " +
               (same_lanes ? lanes_text(lanes) : to_string(threads) + " threads");
    }
};

class Causes {
  public:
    Cause &of(const std::string &what, WarpContext &w, const Fragment &f) {
        auto found = std::find_if(list.begin(), list.end(), [&](const Cause &c) { return c.what == what; });
        if (found == list.end()) {
            Cause cause;
            cause.what = what;
            cause.warp = &w;
            cause.fragment = f;
            cause.op = f.pc;
            cause.lane = unsigned(std::countr_zero(f.mask));
            found = list.insert(list.end(), std::move(cause));
        }
        found->add(w, f);
        return *found;
    }
    std::string text(bool grid, bool cluster) const {
        std::string text;
        for (size_t i = 0; i < std::min(list.size(), kMostListed); ++i)
            text += (i ? "; " : "") + list[i].who(grid, cluster) + ": " + list[i].what;
        return list.size() > kMostListed ? text + "; and " + to_string(list.size() - kMostListed) + " more" : text;
    }
    std::vector<Cause> list;
};

std::string wait_text(const BlockContext &block, const WarpContext &w, const Fragment &f) {
    const Program &program = *block.program;
    const Op &op = program.ops[f.pc];
    const std::string waits = op_text(program, f.pc) + " waits ";
    switch (f.wait) {
        case Wait::warp_sync: {
            const uint32_t members =
                op.member == kNoSlot
                    ? kAllLanes
                    : reinterpret_cast<const uint32_t *>(f.frame->regs + op.member)[std::countr_zero(f.mask)];
            return waits + "for " + lanes_text(members & ~f.mask);
        }
        case Wait::warpgroup:
            return waits + "for " + warpgroup_wait_text(block, w, f);
        case Wait::mbarrier:
            return waits + "for " + mbarrier_wait_text(block, w, f);
        case Wait::cluster:
            return waits + "at " + cluster_wait_text(block);
        default:
            return waits + "at " + barrier_wait_text(block, f);
    }
}

// "0" of the bytes there, as the type at the end of the instruction's name has them; empty where that says no number.
std::string value_text(const std::string &instruction, const std::byte *at) {
    const ptx::Type type = ptx::type_from_name(instruction.substr(instruction.rfind('.') + 1));
    const unsigned bytes = ptx::type_bytes(type);
    if (!bytes || bytes > 8) return "";
    uint64_t bits = 0;
    std::memcpy(&bits, at, bytes);
    if (type == ptx::Type::f32 || type == ptx::Type::f64) {
        char text[32];
        const double value =
            type == ptx::Type::f32 ? double(std::bit_cast<float>(uint32_t(bits))) : std::bit_cast<double>(bits);
        std::snprintf(text, sizeof text, "%g", value);
        return text;
    }
    const unsigned unused = 64 - 8 * bytes;
    return ptx::is_signed(type) ? to_string(int64_t(bits << unused) >> unused) : to_string(bits);
}

// What a fragment that goes round looks at in vain: where it says itself that others write there, that.
const Polled *polled_by(const Trail &t) {
    const Polled *best = nullptr;
    const auto rank = [](const Polled &p) { return 2 * p.strong + !p.shared; };
    for (const Polled &p : t.polled)
        if (!best || rank(p) >= rank(*best)) best = &p;
    return best;
}

std::string poll_text(const BlockContext &block, const Polled &p) {
    const std::string &name = block.program->debug[p.op].text;
    const bool atomic = block.program->ops[p.op].cls == OpClass::atomic;
    std::string text = op_text(*block.program, p.op) + (atomic ? " finds " : " reads ");
    const AllocationView *view = p.shared ? nullptr : block.global->find(p.address);
    const std::byte *at = p.shared ? block.shared + p.address : view ? view->at(p.address) : nullptr;
    const std::string value = at ? value_text(name, at) : "";
    text +=
        (value.empty() ? "the same" : value) + " again and again at " + (p.shared ? "shared " : "") + hex(p.address);
    if (view)
        text += " (byte " + to_string(p.address - view->base) + " of the " + size_text(view->bytes) + " allocated at " +
                hex(view->base) + ")";
    if (p.strong) return text;
    return text +
           ", a plain location: where another thread is to write it, read it with volatile or an atomic load "
           "(cuda::atomic_ref, ld.relaxed, ld.acquire)";
}

// Of those that go round, by block, warp and lane: the first stands for them.
std::vector<const Trail *> in_order(const Standstill &standstill) {
    std::vector<const Trail *> order;
    for (const Trail &t : standstill.rounds()) order.push_back(&t);
    std::sort(order.begin(), order.end(), [](const Trail *a, const Trail *b) {
        const auto key = [](const Trail *t) {
            return std::make_tuple(t->warp->owner->linear_id, t->warp->id, std::countr_zero(t->mask));
        };
        return key(a) < key(b);
    });
    return order;
}

void add_rounds(Causes &causes, const Standstill &standstill) {
    for (const Trail *const t : in_order(standstill)) {
        WarpContext &w = *t->warp;
        const Fragment *const f = std::find_if(w.fragments.begin(), w.fragments.begin() + w.count,
                                               [&](const Fragment &f) { return f.mask == t->mask; });
        const Polled *p = t->phase.empty() ? polled_by(*t) : nullptr;
        const std::string what =
            p ? poll_text(*w.owner, *p)
            : t->phase.empty()
                ? "a loop at " + where(*w.owner->program, t->pc) +
                      " runs for ever: it reads nothing that can change (what is neither volatile nor atomic may be "
                      "read once, before the loop)"
                : op_text(*w.owner->program, t->asked) + " asks again and again for " + t->phase;
        Cause &cause = causes.of(what, w, *f);
        if (cause.warp_count > 1) continue;
        cause.op = p ? p->op : t->phase.empty() ? t->pc : t->asked;
        cause.address = p ? p->address : 0;
        if (p) cause.lane = p->lane;
    }
}

void add_waits(Causes &causes, BlockContext &first) {
    BlockContext *const leader = &first;
    for (BlockContext *block : team_of(leader))
        for (const auto &w : block->contexts)
            for (uint32_t i = 0; i < w->count; ++i)
                if (w->fragments[i].wait != Wait::nothing)
                    causes.of(wait_text(*block, *w, w->fragments[i]), *w, w->fragments[i]);
}

[[noreturn]] void report(const Cause &cause, HazardKind kind, const std::string &text) {
    WarpContext &w = *cause.warp;
    w.regs = cause.fragment.frame->regs;
    w.exec = cause.fragment.mask;
    report_and_end(w, w.owner->program->ops[cause.op], kind, int(cause.lane), cause.address, text);
}

bool is_cluster(BlockContext &first) {
    return first.cluster && !first.cluster->peers.empty();
}

// It waits for lanes, not for registers.
bool waits_for_lanes(const BlockContext &block, const Fragment &f) {
    return f.wait == Wait::warp_sync ||
           (f.wait == Wait::warpgroup && block.program->ops[f.pc].cls != OpClass::warpgroup);
}

// Lanes of the warp that will not meet: at a warp-synchronous op, or at a barrier and somewhere else.
HazardKind kind_of(const WarpContext &w) {
    bool at_barrier = false, at_mbarrier = false, apart = false;
    for (uint32_t i = 0; i < w.count; ++i) {
        const Fragment &f = w.fragments[i];
        if (waits_for_lanes(*w.owner, f)) return HazardKind::missing_lanes;
        at_mbarrier = at_mbarrier || f.wait == Wait::mbarrier;
        at_barrier = at_barrier || f.wait == Wait::barrier;
        apart = apart || f.pc != w.fragments[0].pc;
    }
    return at_barrier && !at_mbarrier && apart ? HazardKind::divergent_barrier : HazardKind::deadlock;
}

}  // namespace

void report_deadlock(BlockContext &leader) {
    Causes causes;
    add_waits(causes, leader);
    BlockContext *const first = &leader;
    HazardKind kind = HazardKind::deadlock;
    const Cause *at = nullptr;
    for (const Cause &cause : causes.list) {
        // What one block waits for at the cluster's barrier says less than what keeps another from there.
        if (!at || (at->fragment.wait == Wait::cluster && cause.fragment.wait != Wait::cluster)) at = &cause;
    }
    if (!at) abort_launch(leader, kind, "no thread of the block can go on");
    Cause chosen = *at;
    for (BlockContext *block : team_of(first)) {
        for (const auto &w : block->contexts) {
            if (kind != HazardKind::deadlock || !w->count || (kind = kind_of(*w)) == HazardKind::deadlock) continue;
            chosen.warp = w.get();
            chosen.fragment = w->fragments[0];
            for (uint32_t i = 0; i < w->count; ++i)
                if (waits_for_lanes(*block, w->fragments[i])) chosen.fragment = w->fragments[i];
            chosen.op = chosen.fragment.pc;
            chosen.lane = unsigned(std::countr_zero(chosen.fragment.mask));
        }
    }
    const bool of_mbarrier = kind == HazardKind::deadlock && chosen.fragment.wait == Wait::mbarrier;
    const std::string why =
        of_mbarrier
            ? "nobody can complete " + mbarrier_wait_text(*chosen.warp->owner, *chosen.warp, chosen.fragment) + "; "
            : "";
    const bool cluster = is_cluster(leader);
    report(chosen, kind,
           why + "no thread of the " + (cluster ? "cluster" : "block") + " can go on; " + causes.text(false, cluster));
}

void report_standstill(BlockContext &first, const Standstill &standstill) {
    Causes causes;
    add_rounds(causes, standstill);
    add_waits(causes, first);
    const bool cluster = is_cluster(first);
    report(causes.list.front(), HazardKind::deadlock,
           std::string("no thread of the ") + (cluster ? "cluster" : "block") + " can go on; " +
               causes.text(false, cluster));
}

void report_standstill(std::vector<BlockContext *> blocks, const Standstill &standstill, uint64_t admitted,
                       uint64_t resident) {
    std::sort(blocks.begin(), blocks.end(),
              [](const BlockContext *a, const BlockContext *b) { return a->linear_id < b->linear_id; });
    Causes causes;
    add_rounds(causes, standstill);
    for (BlockContext *block : blocks) add_waits(causes, *block);
    const LaunchShared &launch = *blocks.front()->worker->launch;
    const uint64_t each = launch.blocks / launch.teams;
    std::string text = "no thread of the launch can go on; " + causes.text(launch.blocks > 1, false);
    if (admitted < launch.teams) {
        std::set<uint64_t> waiting;
        for (uint64_t block = admitted * each; block < launch.blocks; ++block) waiting.insert(block);
        text += "; " + numbered("block", waiting) + (waiting.size() > 1 ? " have" : " has") +
                " not started: the device holds " + to_string(resident * each) +
                " blocks of this launch at once, and none of those that it holds can end. Blocks that wait for each "
                "other must all fit: cudaOccupancyMaxActiveBlocksPerMultiprocessor says how many do, and a "
                "cooperative launch refuses more";
    }
    report(causes.list.front(), HazardKind::deadlock, text);
}

}  // namespace warpsim
