#include "instructions/bulk_copy/bulk_copy.h"

#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/text.h"
#include "instructions/mbarrier/mbarrier.h"
#include "machine/addresses.h"
#include "machine/cluster.h"
#include "machine/completions.h"

namespace warpsim {
namespace {

using std::to_string;

constexpr unsigned kAlignment = 16;
constexpr std::byte kPoison{0xff};

struct WithExec {  // for as long as it lives, only some lanes execute
    Warp &w;
    uint32_t before = w.exec;
    ~WithExec() { w.exec = before; }
};

std::string text_of(const Warp &w, const Op &op) {
    const Program &program = *w.block->program;
    return program.debug[op.index].text + " at " + where(program, op.index);
}

// The addresses of the copy's shared side and of its mbarrier, both in .shared::cluster. Form: BulkForm or TensorForm;
// mbarrier_at: the place of its address in the op's list.
struct Sides {
    uint64_t to[kLanes], mbarrier[kLanes];
    template <class Form>
    Sides(const Warp &w, const Op &op, const Form &form, uint32_t mbarrier_at) {
        const uint32_t *list = w.block->program->operand_list.data() + op.list + mbarrier_at;
        lane_addresses(w, with_address(op, op.a, op.imm, form.shared_base32), to);
        lane_addresses(w, with_address(op, list[0], list[1], form.mbarrier_base32), mbarrier);
    }
};

// The block that both lead to; takes its rank out of the addresses. Null: something is wrong, which has been reported.
Block *owner_of(Warp &w, const Op &op, unsigned lane, uint64_t &to, uint64_t &mbarrier) {
    Block *owner = shared_owner(w, op, lane, to, true);
    Block *other = owner ? shared_owner(w, op, lane, mbarrier, true) : nullptr;
    if (owner == other) return owner;
    if (other) {
        report_hazard(w, op, HazardKind::cluster, int(lane), to,
                      text_of(w, op) + " writes to block " + to_string(owner->rank) +
                          " of the cluster and completes to an mbarrier of block " + to_string(other->rank) +
                          ": both must be of one block");
    }
    return nullptr;
}

// A copy from global memory by `load`, whose lanes may name another block.
void load_remote(Warp &w, const Op &op, Sides sides, uint32_t mbarrier_at, Handler load) {
    const WithExec restore{w};
    const uint32_t exec = w.exec;
    uint32_t own = 0;
    const Op &there = w.block->program->remote_ops[op.target];
    const uint32_t *list = w.block->program->operand_list.data() + there.list;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (!((sides.to[lane] | sides.mbarrier[lane]) >> kRankShift)) {
            own |= 1u << lane;
            continue;
        }
        Block *owner = owner_of(w, op, lane, sides.to[lane], sides.mbarrier[lane]);
        if (!owner) continue;
        w.lanes<uint32_t>(there.a)[lane] = uint32_t(sides.to[lane]);
        w.lanes<uint32_t>(list[mbarrier_at])[lane] = uint32_t(sides.mbarrier[lane]);
        w.exec = 1u << lane;
        const InBlock in(w, *owner);
        load(w, there);
    }
    if (!own) return;
    w.exec = own;
    load(w, op);
}

// The same place in all blocks of a mask, whose slot stands at mask_at in the list.
void multicast(Warp &w, const Op &op, uint32_t mask_at, Handler load) {
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    const uint16_t *mask = w.lanes<uint16_t>(list[mask_at]);
    const WithExec restore{w};
    const uint32_t exec = w.exec;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        w.exec = 1u << lane;
        for (uint32_t ranks = mask[lane]; ranks; ranks &= ranks - 1) {
            uint64_t address = rank_bits(unsigned(std::countr_zero(ranks)));
            Block *owner = shared_owner(w, op, lane, address, true);
            if (!owner) continue;
            const InBlock in(w, *owner);
            load(w, op);
        }
    }
}

}  // namespace

void exec_bulk_load_remote(Warp &w, const Op &op) {
    load_remote(w, op, {w, op, unpack<BulkForm>(op.extra), kBulkMbarrier}, kBulkMbarrier, exec_bulk_load);
}

void exec_tensor_load_remote(Warp &w, const Op &op) {
    load_remote(w, op, {w, op, unpack<TensorForm>(op.extra), kTensorMbarrier}, kTensorMbarrier, exec_tensor_load);
}

void exec_bulk_multicast(Warp &w, const Op &op) {
    multicast(w, op, kBulkListLength, exec_bulk_load);
}

void exec_tensor_multicast(Warp &w, const Op &op) {
    multicast(w, op, kTensorListLength, exec_tensor_load);
}

void exec_bulk_to_peer(Warp &w, const Op &op) {
    const BulkForm form = unpack<BulkForm>(op.extra);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    const uint32_t *size = w.lanes<uint32_t>(op.b);
    const bool reduces = form.operation != BulkOperation::none;
    Sides sides(w, op, form, kBulkMbarrier);
    uint64_t from[kLanes];
    const int64_t offset = int64_t(list[kBulkGlobalLow] | uint64_t(list[kBulkGlobalHigh]) << 32);
    lane_addresses(w, with_address(op, list[kBulkGlobal], offset, form.global_base32), from);
    Block &own = *w.block;
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const uint32_t bytes = size[lane];
        Block *owner = owner_of(w, op, lane, sides.to[lane], sides.mbarrier[lane]);
        if (!owner) continue;
        if ((bytes | from[lane] | sides.to[lane]) % kAlignment) {
            report_hazard(w, op, HazardKind::misaligned, int(lane), sides.to[lane],
                          text_of(w, op) + " copies " + to_string(bytes) + " bytes from shared " +
                              hex(uint32_t(from[lane])) + " to " + hex(uint32_t(sides.to[lane])) +
                              ": sizes and addresses are multiples of 16");
            continue;
        }
        ++w.stats[op.index].bulk_copies;
        w.stats[op.index].bulk_bytes += bytes;
        if (!bytes || !in_shared(w, op, Intent::read, lane, from[lane], bytes)) continue;
        MbarrierArrival arrival;
        arrival.warp = &w;
        arrival.op = &op;
        arrival.lanes = 1u << lane;
        arrival.bytes = bytes;
        arrival.source = &own;
        arrival.source_at = uint32_t(from[lane]);
        if (own.shadow) arrival.source_transfer = own.shadow->bulk_read_issue(w, op, lane, arrival.source_at, bytes);
        const InBlock in(w, *owner);
        if (!in_shared(w, op, reduces ? Intent::atomic : Intent::write, lane, sides.to[lane], bytes)) continue;
        uint64_t at[kLanes];
        uint32_t mbarrier[kLanes];
        std::fill_n(at, kLanes, sides.mbarrier[lane]);
        if (!check_shared(w, op, Intent::atomic, at, mbarrier, 8, 1u << lane)) continue;
        Mbarrier *m = find_mbarrier(w, op, lane, mbarrier[lane], true);
        if (!m) continue;
        limit_arrivals(*w.block);
        arrival.mbarrier = mbarrier[lane];
        arrival.number = w.block->completions->issued++;
        arrival.to = uint32_t(sides.to[lane]);
        SharedShadow *shadow = w.block->shadow;
        if (reduces) {  // at once, so that results repeat: to the shadow an atomic update that the phase releases
            for (uint32_t k = 0; shadow && k < bytes; k += 4) {
                uint32_t address[kLanes];
                std::fill_n(address, kLanes, arrival.to + k);
                shadow->access(w, op, Access::atomic, address, 4, 1u << lane);
            }
            if (shadow) arrival.knowledge = shadow->snapshot(w, 1u << lane, arrival.stamp);
            combine(form.operation, form.type, w.block->shared + arrival.to, own.shared + arrival.source_at, bytes);
            arrival.reduced = true;
        } else {
            if (shadow) arrival.transfer = shadow->bulk_write_issue(w, op, lane, arrival.to, bytes, arrival.mbarrier);
            std::memset(w.block->shared + arrival.to, int(kPoison), bytes);
        }
        w.block->completions->arrivals.push_back(std::move(arrival));
        changed_mbarrier(*w.block, mbarrier[lane], *m);
    }
}

}  // namespace warpsim
