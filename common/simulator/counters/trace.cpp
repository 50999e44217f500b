#include "counters/trace.h"

#include <algorithm>

#include "core/names.h"

namespace warpsim {
namespace {

constexpr uint64_t kMostEvents = 1 << 18;  // of a block: what a loop without end does must not eat the host's memory

// A run ends in one of these; what they do is an event of its own.
bool is_event(Flow flow) {
    return flow == Flow::block_sync || flow == Flow::warpgroup || flow == Flow::cluster_wait ||
           flow == Flow::mbarrier_wait;
}

void add_counts(OpStats &to, OpStats &from) {
    to.issued += from.issued;
    to.shared_wavefronts += from.shared_wavefronts;
    to.shared_ideal += from.shared_ideal;
    to.global_sectors += from.global_sectors;
    to.global_ideal += from.global_ideal;
    to.global_bytes += from.global_bytes;
    to.divergent += from.divergent;
    to.bulk_copies += from.bulk_copies;
    to.bulk_bytes += from.bulk_bytes;
    to.tensor_sectors += from.tensor_sectors;
    to.waits += from.waits;
    to.waited += from.waited;
    from = {};
}

}  // namespace

BlockTrace::BlockTrace(const Program &program, unsigned warps, const uint32_t (&block)[3])
    : program_(program), stats_(program.ops.size()), open_(warps) {
    std::copy(block, block + 3, traced_.block);
    traced_.warps.resize(warps);
}

TraceCost BlockTrace::move_counts(uint32_t op) {
    OpStats &own = stats_[op];
    const uint64_t sectors = own.global_sectors + own.tensor_sectors;
    const TraceCost cost{op, uint32_t(own.shared_wavefronts), uint32_t(sectors), uint32_t(own.bulk_bytes)};
    add_counts((*worker_)[op], own);
    return cost;
}

void BlockTrace::add(uint32_t warp, TraceEvent event) {
    if (events_ == kMostEvents) {
        traced_.cut = true;
        return;
    }
    ++events_;
    traced_.warps[warp].push_back(event);
}

void BlockTrace::close(uint32_t warp) {
    Open &open = open_[warp];
    if (!open.is) return;
    open.is = false;
    TracePiece piece{open.first, open.last, {}};
    for (uint32_t op = open.first; op <= open.last; ++op) {
        const TraceCost cost = move_counts(op);
        if (cost.wavefronts || cost.sectors || cost.bytes) piece.costs.push_back(cost);
    }
    const auto [at, is_new] = numbers_.try_emplace(std::move(piece), uint32_t(traced_.pieces.size()));
    if (is_new) traced_.pieces.push_back(at->first);
    TraceEvent event;
    event.which = at->second;
    add(warp, event);
}

void BlockTrace::extend(uint32_t warp, uint32_t first, uint32_t last) {
    Open &open = open_[warp];
    if (!open.is || first != open.last + 1) {
        close(warp);
        open = {true, first, last};
    }
    open.last = last;
}

void BlockTrace::run(const Warp &w, uint32_t first, uint32_t last) {
    for (const TraceEvent &event : pending_) {
        if (event.op >= first) extend(w.id, first, event.op);
        close(w.id);
        add(w.id, event);
        first = std::max(first, event.op + 1);
    }
    pending_.clear();
    if (is_event(program_.ops[last].flow)) --last;
    if (int64_t(first) <= int64_t(last)) extend(w.id, first, last);
}

void BlockTrace::barrier(const Warp &w, const Op &op, unsigned number, bool waits) {
    close(w.id);
    TraceEvent event;
    event.kind = waits ? TraceEvent::Kind::sync : TraceEvent::Kind::arrive;
    event.op = op.index;
    event.which = number;
    event.phase = uses_[number];
    add(w.id, event);
}

void BlockTrace::mbarrier_init(uint32_t number, uint32_t address, uint32_t op, uint32_t expected) {
    if (traced_.mbarriers.size() <= number) traced_.mbarriers.resize(number + 1);
    traced_.mbarriers[number] = {address, op, expected};
}

// Lanes of one instruction that do the same are one event.
void BlockTrace::mbarrier(const Warp &w, const Op &op, TraceEvent::Kind kind, uint32_t number, int64_t phase,
                          uint32_t count, uint64_t bytes) {
    TraceEvent event;
    event.kind = kind;
    event.op = op.index;
    event.which = number;
    event.phase = phase;
    event.count = count;
    event.bytes = bytes;
    if (is_event(program_.ops[op.index].flow)) {
        close(w.id);
        return add(w.id, event);
    }
    if (!pending_.empty()) {
        TraceEvent &last = pending_.back();
        if (last.kind == kind && last.op == op.index && last.which == number && last.phase == phase) {
            last.count += count;
            last.bytes += bytes;
            return;
        }
    }
    pending_.push_back(event);
}

void BlockTrace::warpgroup(const Warp &w, const Op &op) {
    close(w.id);
    TraceEvent event;
    event.kind = TraceEvent::Kind::warpgroup;
    event.op = op.index;
    add(w.id, event);
}

void BlockTrace::finish() {
    for (uint32_t warp = 0; warp < open_.size(); ++warp) close(warp);
    for (uint32_t op = 0; op < stats_.size(); ++op) move_counts(op);
}

std::vector<TracedOp> traced_ops(const Program &program, const std::vector<TracedBlock> &blocks) {
    std::vector<char> named(program.ops.size());
    for (const TracedBlock &block : blocks) {
        for (const TracePiece &piece : block.pieces)
            std::fill(named.begin() + piece.first, named.begin() + piece.last + 1, 1);
        for (const TracedMbarrier &m : block.mbarriers) named[m.op] = 1;
        for (const auto &warp : block.warps)
            for (const TraceEvent &event : warp)
                if (event.kind != TraceEvent::Kind::run) named[event.op] = 1;
    }
    std::vector<TracedOp> ops;
    for (uint32_t i = 0; i < named.size(); ++i) {
        const Op &op = program.ops[i];
        const OpDebug &debug = program.debug[i];
        const bool counts = debug.counted && op.flow != Flow::join && op.flow != Flow::jump;
        if (!named[i] || !counts) continue;
        const bool waits =
            op.cls == OpClass::async_copy || op.cls == OpClass::bulk_copy || op.cls == OpClass::warpgroup;
        ops.push_back(
            {i, op.cls, debug.text, file_name(program, debug.source), debug.source.line, waits ? op.imm : 0, {}});
        if (!is_header(program, debug.source)) continue;
        for (const CallSite &call : calls_to(program, debug.source)) ops.back().calls.push_back({call.file, call.line});
    }
    return ops;
}

}  // namespace warpsim
