// Ranks, addresses and accesses between the blocks of a cluster.
#include "machine/cluster.h"

#include <bit>

#include "core/names.h"
#include "machine/addresses.h"

namespace warpsim {
namespace {

using std::to_string;

ClusterContext &cluster_of(Warp &w) {
    return *context_of(w).owner->cluster;
}

}  // namespace

bool rank_exists(Warp &w, const Op &op, unsigned lane, uint64_t address, uint64_t rank) {
    const size_t count = cluster_of(w).blocks.size();
    if (rank < count) return true;
    report_hazard(w, op, HazardKind::cluster, int(lane), address,
                  instruction_at(*w.block->program, op.index) + " names block " + to_string(rank) +
                      " of a cluster of " + to_string(count) +
                      (count == 1 ? " block: the launch has no clusters, or smaller ones than the kernel counts on"
                                  : " blocks: ranks are 0 to " + to_string(count - 1)));
    return false;
}

Team team_of(BlockContext *const &block) {
    if (!block->cluster) return {&block, 1};
    return {block->cluster->blocks.data(), block->cluster->blocks.size()};
}

void ClusterContext::start(unsigned warps_of_each) {
    const size_t warps = blocks.size() * warps_of_each;
    arrived.assign(warps, 0);
    passed.assign(warps, 0);
    arrived_at.assign(warps, kNoSlot);
    waited_at.assign(warps, kNoSlot);
    arriving = completed = nullptr;
    std::vector<SharedShadow *> shadows;
    for (BlockContext *block : blocks)
        if (block->shadow) shadows.push_back(block->shadow);
    if (shadows.size() == blocks.size() && shadows.size() > 1) SharedShadow::unite(shadows);
}

Block *shared_owner(Warp &w, const Op &op, unsigned lane, uint64_t &address, bool ends_later) {
    const unsigned named = named_rank(address);
    BlockContext &own = *context_of(w).owner;
    if (!named || !own.cluster) return &own;
    if (!rank_exists(w, op, lane, address, named - 1)) return nullptr;
    address &= kOffsetMask;
    BlockContext &peer = *own.cluster->blocks[named - 1];
    if (&peer == &own) return &own;
    if (!peer.alive) {
        report_hazard(w, op, HazardKind::cluster, int(lane), address,
                      instruction_at(*w.block->program, op.index) + " uses the shared memory of block " +
                          to_string(peer.rank) +
                          " of the cluster, which has exited: it has waited at no cluster barrier "
                          "(barrier.cluster.arrive and .wait, cluster.sync()) behind this access");
        return nullptr;
    }
    if (peer.shadow) peer.shadow->visit(w, op, 1u << lane, ends_later);
    return &peer;
}

void exec_remote(Warp &w, const Op &op) {
    const Op &there = w.block->program->remote_ops[op.target];
    const bool generic = op.extra & kRemoteGeneric;
    const uint64_t window = generic ? kSharedWindow : 0;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    uint32_t remote = 0;
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (generic && (address[lane] & kWindowMask) != kSharedWindow) continue;
        remote |= uint32_t(named_rank(address[lane] - window) != 0) << lane;
    }
    if (!remote) return there.fn(w, op);
    const uint32_t exec = w.exec;
    struct Restore {
        Warp &w;
        uint32_t exec;
        ~Restore() { w.exec = exec; }
    } restore{w, exec};
    if (exec & ~remote) {
        w.exec = exec & ~remote;
        there.fn(w, op);
    }
    while (remote) {
        const unsigned first = unsigned(std::countr_zero(remote));
        const unsigned rank = named_rank(address[first] - window);
        uint32_t lanes = 0, good = 0;
        for (unsigned i = 0; i < kLanes; ++i)
            lanes |= uint32_t((remote >> i & 1) && named_rank(address[i] - window) == rank) << i;
        remote &= ~lanes;
        Block *owner = nullptr;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            uint64_t offset = address[lane] - window;
            Block *found = shared_owner(w, op, lane, offset, false);
            if (!found) continue;
            owner = found;
            good |= 1u << lane;
            if (generic) {
                w.lanes<uint64_t>(there.a)[lane] = kSharedWindow + offset;
            } else {
                w.lanes<uint32_t>(there.a)[lane] = uint32_t(offset);
            }
        }
        if (!good) continue;
        InBlock in(w, *owner);
        w.exec = good;
        there.fn(w, there);
    }
}

}  // namespace warpsim
