// barrier.cluster: threads of all blocks of a cluster arrive, and wait until all that have not exited have arrived.
#include <bit>

#include "core/names.h"
#include "exec/cluster.h"
#include "exec/mbarrier.h"

namespace warpsim {
namespace {

using std::to_string;

std::string op_text(const Program &program, uint32_t op) {
    return program.debug[op].text + " at " + where(program, op);
}

std::string thread_text(const WarpContext &w, unsigned lane) {
    return "thread " + to_string(w.id * kLanes + lane);
}

void complete_if_all_arrived(ClusterContext &cluster) {
    bool any = false;
    for (BlockContext *block : cluster.blocks) {
        for (const auto &w : block->contexts) {
            if (w->alive & ~cluster.arrived[w->agent]) return;
            any = any || cluster.arrived[w->agent];
        }
    }
    if (!any) return;
    SharedShadow *shadow = cluster.blocks[0]->shadow;
    if (shadow) shadow->cluster_completed(cluster.arriving, cluster.completed);
    for (BlockContext *block : cluster.blocks) {
        for (const auto &w : block->contexts) {
            cluster.passed[w->agent] |= cluster.arrived[w->agent];
            cluster.arrived[w->agent] = 0;
            for (uint32_t k = 0; k < w->count; ++k) {
                Fragment &f = w->fragments[k];
                if (f.wait == Wait::cluster) f.wait = Wait::nothing;
            }
        }
    }
}

// .aligned: all lanes of a warp execute the same instruction. `first`: of the warp in this phase.
void check_aligned(WarpContext &w, const Op &op, uint32_t &first) {
    const Program &program = *w.block->program;
    if (first != kNoSlot && first != op.index && (op.extra & kClusterAligned)) {
        report_hazard(w, op, HazardKind::divergent_barrier, std::countr_zero(w.exec), 0,
                      "lanes of one warp execute " + op_text(program, op.index) + ", which is .aligned, and " +
                          op_text(program, first) + " for the same phase");
    }
    first = op.index;
}

// A block has exited: copies between blocks that nobody has waited for would use its memory later.
void check_in_flight(BlockContext &exited) {
    const Program &program = *exited.program;
    for (BlockContext *block : exited.cluster->blocks) {
        for (const MbarrierArrival &arrival : block->arriving.arrivals) {
            const bool into = block == &exited && context_of(*arrival.warp).owner != block;
            const bool from = arrival.source == &exited && block != &exited;
            if (!into && !from) continue;
            report_hazard(*arrival.warp, *arrival.op, HazardKind::cluster, std::countr_zero(arrival.lanes), arrival.to,
                          op_text(program, arrival.op->index) + (into ? " writes to" : " reads") +
                              " the shared memory of block " + to_string(exited.rank) +
                              " of the cluster, which has exited: nobody had waited for the phase of " +
                              mbarrier_text(*block, arrival.mbarrier) + (from ? " and told that block so" : "") +
                              " before");
            return;
        }
    }
}

}  // namespace

void exec_cluster_arrive(Warp &warp, const Op &op) {
    WarpContext &w = context_of(warp);
    ClusterContext &cluster = *w.owner->cluster;
    const Program &program = *w.block->program;
    uint32_t &arrived = cluster.arrived[w.agent], &passed = cluster.passed[w.agent];
    uint32_t &at = cluster.arrived_at[w.agent];
    if (const uint32_t twice = w.exec & (arrived | passed)) {
        const unsigned lane = unsigned(std::countr_zero(twice));
        report_hazard(w, op, HazardKind::cluster, int(lane), 0,
                      thread_text(w, lane) + " arrives again at the cluster's barrier at " + where(program, op.index) +
                          ": it has arrived at " + where(program, at) +
                          " and has executed no barrier.cluster.wait since");
        passed &= ~twice;
    }
    if (!arrived) at = cluster.waited_at[w.agent] = kNoSlot;
    check_aligned(w, op, at);
    arrived |= w.exec;
    if (w.block->shadow)
        w.block->shadow->cluster_arrive(w, w.exec, cluster.arriving, (op.extra & kClusterRelaxed) != 0);
    complete_if_all_arrived(cluster);
}

bool wait_for_cluster(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    w.exec = lanes;
    ClusterContext &cluster = *w.owner->cluster;
    uint32_t &arrived = cluster.arrived[w.agent], &passed = cluster.passed[w.agent];
    const Program &program = *w.block->program;
    if (const uint32_t none = lanes & ~(arrived | passed)) {
        const unsigned lane = unsigned(std::countr_zero(none));
        report_hazard(w, op, HazardKind::cluster, int(lane), 0,
                      thread_text(w, lane) + " waits at the cluster's barrier at " + where(program, op.index) +
                          " and has executed no barrier.cluster.arrive since its last wait");
    }
    if (lanes & arrived) {
        --w.stats[op.index].issued;  // it comes again
        if (const uint32_t rest = f.mask & ~lanes) add_fragment(w, f.pc + 1, rest, f.frame);
        f.mask = lanes;
        f.wait = Wait::cluster;
        return false;
    }
    check_aligned(w, op, cluster.waited_at[w.agent]);
    passed &= ~lanes;
    if (w.block->shadow) w.block->shadow->cluster_wait(w, lanes, cluster.completed);
    return true;
}

void exit_cluster(WarpContext &w, uint32_t lanes) {
    BlockContext &block = *w.owner;
    ClusterContext &cluster = *block.cluster;
    cluster.arrived[w.agent] &= ~lanes;
    cluster.passed[w.agent] &= ~lanes;
    if (SharedShadow *shadow = block.shadow; shadow && cluster.blocks.size() > 1) {
        shadow->end_visits(w, lanes);
        shadow->cluster_arrive(w, lanes, cluster.arriving, false);  // whoever meets at the next barrier finds it done
        SharedShadow::Visit left;
        if (!block.alive && shadow->visit_left(left)) {
            BlockContext &by =
                *cluster.blocks[left.agent < cluster.arrived.size() ? left.agent / block.warps : w.owner->rank];
            WarpContext &visitor = left.agent < cluster.arrived.size() ? *by.contexts[left.agent % block.warps] : w;
            const Program &program = *block.program;
            report_hazard(
                visitor, program.ops[left.op], HazardKind::cluster, int(left.lane), 0,
                op_text(program, left.op) + " by " + left.who + " uses the shared memory of block " +
                    to_string(block.rank) +
                    " of the cluster, which may have exited by then: nothing orders it before that exit. That block "
                    "has waited at no cluster barrier (barrier.cluster.arrive and .wait, cluster.sync()) behind this "
                    "access, and for nothing else that shows it");
        }
    }
    if (!block.alive) check_in_flight(block);
    complete_if_all_arrived(cluster);
}

std::string cluster_wait_text(const BlockContext &block) {
    const ClusterContext &cluster = *block.cluster;
    uint32_t arrived = 0, alive = 0;
    for (const BlockContext *b : cluster.blocks) {
        alive += b->alive;
        for (const auto &w : b->contexts) arrived += uint32_t(std::popcount(cluster.arrived[w->agent]));
    }
    return "the cluster's barrier, where " + to_string(arrived) + " of " + to_string(alive) + " threads have arrived";
}

}  // namespace warpsim
