#include "exec/async_store.h"

#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/program.h"
#include "exec/bulk_copy.h"
#include "exec/cluster.h"
#include "exec/completions.h"
#include "exec/mbarrier.h"
#include "exec/memory.h"

namespace warpsim {
namespace {

constexpr std::byte kPoison{0xff};
constexpr unsigned kMbarrierBytes = 8;

struct Place {
    Block *block = nullptr;
    uint32_t at = 0;
};

// Where a lane's address leads; no block: it is wrong, which has been reported.
Place place_of(Warp &w, const Op &op, unsigned lane, uint64_t address, bool generic, unsigned bytes, Intent intent) {
    if (generic) address -= kSharedWindow;  // another window's stays out of bounds
    Block *block = shared_owner(w, op, lane, address, true);
    if (!block) return {};
    const InBlock in(w, *block);
    uint64_t wide[kLanes];
    uint32_t offset[kLanes];
    std::fill_n(wide, kLanes, address);
    if (!check_shared(w, op, intent, wide, offset, bytes, 1u << lane)) return {};
    return {block, offset[lane]};
}

template <class F>
void for_each_store(Warp &w, const Op &op, F each) {
    const AsyncStoreForm form = unpack<AsyncStoreForm>(op.extra);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    const unsigned bytes = form.bytes * form.count;
    Op at = op;
    uint64_t to[kLanes], mbarrier[kLanes];
    at.extra = form.base32 ? kBase32 : 0;
    lane_addresses(w, at, to);
    at.a = list[0];
    at.imm = int64_t(list[1] | uint64_t(list[2]) << 32);
    at.extra = form.mbarrier_base32 ? kBase32 : 0;
    lane_addresses(w, at, mbarrier);
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const Place data = place_of(w, op, lane, to[lane], form.generic, bytes, Intent::write);
        if (!data.block) continue;
        const Place place = place_of(w, op, lane, mbarrier[lane], form.generic, kMbarrierBytes, Intent::atomic);
        if (!place.block) continue;
        if (place.block != data.block) {
            report_hazard(w, op, HazardKind::cluster, int(lane), mbarrier[lane],
                          w.block->program->debug[op.index].text + " at " + where(*w.block->program, op.index) +
                              " writes to block " + std::to_string(data.block->rank) +
                              " of the cluster and completes to an mbarrier of block " +
                              std::to_string(place.block->rank) + ": both must be of one block");
            continue;
        }
        std::vector<std::byte> values(bytes);
        for (unsigned c = 0; c < form.count; ++c)
            std::memcpy(values.data() + c * form.bytes,
                        w.regs + list[kAsyncStoreValues + c] + size_t(lane) * form.bytes, form.bytes);
        const InBlock in(w, *data.block);
        Mbarrier *m = find_mbarrier(w, op, lane, place.at, false);
        if (!m) continue;
        limit_arrivals(*w.block);
        MbarrierArrival arrival;
        arrival.warp = &w;
        arrival.op = &op;
        arrival.lanes = 1u << lane;
        arrival.mbarrier = place.at;
        arrival.number = w.block->completions->issued++;
        arrival.to = data.at;
        arrival.bytes = bytes;
        each(lane, arrival, std::move(values));
        w.block->completions->arrivals.push_back(std::move(arrival));
        changed_mbarrier(*w.block, place.at, *m);
    }
}

}  // namespace

void exec_async_store(Warp &w, const Op &op) {
    for_each_store(w, op, [&](unsigned lane, MbarrierArrival &arrival, std::vector<std::byte> values) {
        if (w.block->shadow)
            arrival.transfer =
                w.block->shadow->bulk_write_issue(w, op, lane, arrival.to, arrival.bytes, arrival.mbarrier);
        std::memset(w.block->shared + arrival.to, int(kPoison), arrival.bytes);
        arrival.data = std::move(values);
    });
}

// Combined at once, so that results repeat; to the shadow it is an atomic update that the mbarrier's phase releases.
void exec_async_reduction(Warp &w, const Op &op) {
    const AsyncStoreForm form = unpack<AsyncStoreForm>(op.extra);
    for_each_store(w, op, [&](unsigned lane, MbarrierArrival &arrival, const std::vector<std::byte> &values) {
        if (w.block->shadow) {
            uint32_t address[kLanes];
            std::fill_n(address, kLanes, arrival.to);
            w.block->shadow->access(w, op, Access::atomic, address, arrival.bytes, 1u << lane);
            arrival.knowledge = w.block->shadow->snapshot(w, 1u << lane, arrival.stamp);
        }
        combine(form.operation, form.type, w.block->shared + arrival.to, values.data(), arrival.bytes);
        arrival.reduced = true;
    });
}

}  // namespace warpsim
