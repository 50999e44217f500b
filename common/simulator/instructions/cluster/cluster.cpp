// Clusters of thread blocks: barrier.cluster, at which threads of all blocks arrive and wait until all that have not
// exited have arrived; mapa, getctarank; st.async and red.async, by which registers of a lane go to shared memory of
// the cluster in the background, and the bytes complete to an mbarrier of the same block.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "core/warp.h"
#include "instructions/bulk_copy/bulk_copy.h"
#include "instructions/mbarrier/mbarrier.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/addresses.h"
#include "machine/cluster.h"
#include "machine/completions.h"
#include "machine/core_ops.h"

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

namespace {

struct AsyncStoreForm {
    ptx::Type type = ptx::Type::none;  // of a reduction
    BulkOperation operation = BulkOperation::none;
    uint8_t bytes : 4 = 4, count : 4 = 1;  // of an element, and how many of them
    bool generic : 1 = false, base32 : 1 = false, mbarrier_base32 : 1 = false;
};
static_assert(sizeof(AsyncStoreForm) <= sizeof(Op::extra));

// The list: slot of the mbarrier's base and its offset (low and high half), then the elements' slots.
inline constexpr uint32_t kAsyncStoreValues = 3;

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

// Op::b: the rank. Op::imm: of the address, with the base in a. extra: kBase32, kRemoteGeneric.
void exec_mapa(Warp &w, const Op &op) {
    const bool generic = op.extra & kRemoteGeneric;
    const uint32_t *rank = w.lanes<uint32_t>(op.b);
    const BlockContext &own = *context_of(w).owner;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    uint64_t result[kLanes] = {};
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (!rank_exists(w, op, lane, address[lane], rank[lane])) continue;
        const uint64_t window = generic ? kSharedWindow : 0, offset = address[lane] - window;
        if (generic && (address[lane] & kWindowMask) != kSharedWindow) {
            report_hazard(
                w, op, HazardKind::invalid_address, int(lane), address[lane],
                instruction_at(*w.block->program, op.index) + " maps a generic address that is none of shared memory");
            continue;
        }
        result[lane] = window + (offset & kOffsetMask) + (rank[lane] == own.rank ? 0 : rank_bits(rank[lane]));
    }
    if (op.c == 4) {
        write_lanes<uint32_t>(w, op.dst, [&](unsigned i) { return uint32_t(result[i]); });
    } else {
        write_lanes<uint64_t>(w, op.dst, [&](unsigned i) { return result[i]; });
    }
}

void exec_getctarank(Warp &w, const Op &op) {
    const uint64_t window = op.extra & kRemoteGeneric ? kSharedWindow : 0;
    const uint32_t own = context_of(w).owner->rank;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    write_lanes<uint32_t>(w, op.dst, [&](unsigned i) {
        const unsigned named = named_rank(address[i] - window);
        return named ? named - 1 : own;
    });
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

uint32_t base_bits(const Lowering::Address &address) {
    return address.slot != kNoSlot && address.slot_bytes == 4 ? kBase32 : 0;
}

// The address that mapa and getctarank take: no [brackets]. In .shared::cluster an offset, else a generic address.
Lowering::Address plain_address(Lowering &l, const Instruction &in, const Operand &operand, Type type) {
    if (operand.kind == Operand::Kind::symbol) {
        Lowering::Address address = l.address(operand);
        if (address.space_of_symbol != ptx::Space::shared) l.unsupported(in, "a variable that is not in shared memory");
        if (!in.has("shared::cluster")) address.offset += int64_t(kSharedWindow);
        return address;
    }
    const unsigned bytes = ptx::type_bytes(type);
    return {l.source(operand, type), bytes, 0, ptx::Space::generic, false};
}

// mapa{.shared::cluster}.type d, a, rank
void lower_mapa(Lowering &l, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers.back());
    const bool generic = !in.has("shared::cluster");
    if (generic && type == Type::u32) l.unsupported(in, "a generic address is 64 bits wide");
    const Lowering::Address address = plain_address(l, in, in.operands[1], type);
    const uint32_t rank = l.source(in.operands[2], Type::u32), dst = l.destination(in.operands[0], type);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = address.slot;
    op.imm = address.offset;
    op.b = rank;
    op.c = ptx::type_bytes(type);
    op.extra = base_bits(address) | (generic ? kRemoteGeneric : 0);
}

// getctarank{.shared::cluster}.type d, a: the type is the address's
void lower_getctarank(Lowering &l, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers.back());
    const bool generic = !in.has("shared::cluster");
    if (generic && type == Type::u32) l.unsupported(in, "a generic address is 64 bits wide");
    const Lowering::Address address = plain_address(l, in, in.operands[1], type);
    const uint32_t dst = l.destination(in.operands[0], Type::u32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = base_bits(address) | (generic ? kRemoteGeneric : 0);
}

void lower_cluster_barrier(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    op.extra = (in.has("aligned") ? kClusterAligned : 0) | (in.has("relaxed") ? kClusterRelaxed : 0);
}

// st.async{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]; red.async.op.type [a], b, [mbar]
void lower_async_store(Lowering &l, const Instruction &in) {
    const bool reduces = in.opcode == "red";
    const Type type = ptx::type_from_name(in.modifiers.back());
    AsyncStoreForm form;
    form.generic = !in.has("shared") && !in.has("shared::cta") && !in.has("shared::cluster");
    form.bytes = uint8_t(ptx::type_bytes(type));
    const Operand &value = in.operands[1];
    const size_t count = in.has("v2") ? 2 : in.has("v4") ? 4 : 1;
    const std::vector<Operand> values =
        value.kind == Operand::Kind::vector ? value.elements : std::vector<Operand>{value};
    if (values.size() != count || (count == 1) != (value.kind != Operand::Kind::vector))
        l.unsupported(in, "the vector has another number of elements");
    form.count = uint8_t(count);
    if (form.bytes * count > 16) l.unsupported(in, "a lane moves at most 16 bytes");
    if (reduces) {
        form.operation = bulk_operation(in);
        form.type = type;
        if (!reduces_shared(form.operation, type) && type != Type::s64)
            l.unsupported(in, "the operation is not one of that type");
        if (type == Type::s64 && form.operation != BulkOperation::add)
            l.unsupported(in, "the operation is not one of that type");
    }
    const Lowering::Address to = l.address(in.operands[0]), mbarrier = l.address(in.operands[2]);
    form.base32 = base_bits(to) != 0;
    form.mbarrier_base32 = base_bits(mbarrier) != 0;
    std::vector<uint32_t> slots{mbarrier.slot, uint32_t(mbarrier.offset), uint32_t(uint64_t(mbarrier.offset) >> 32)};
    for (const Operand &one : values) {
        const unsigned width = l.register_bytes(one);
        if (width && width != form.bytes) l.unsupported(in, "a register must be as wide as the type");
        slots.push_back(l.source(one, type));
    }
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.list = list;
    op.list_count = uint16_t(slots.size());
    op.extra = pack<uint32_t>(form);
}

#define COMPLETES ".mbarrier::complete_tx::bytes"

constexpr InstructionRow kRows[] = {
    {"mapa{.shared::cluster}.{u32,u64}", "d, a, b", OpClass::integer, Flow::straight, exec_mapa, lower_mapa},
    {"getctarank{.shared::cluster}.{u32,u64}", "d, a", OpClass::integer, Flow::straight, exec_getctarank,
     lower_getctarank},
    {"barrier.cluster.arrive!{.release,.relaxed}{.aligned}", "", OpClass::barrier, Flow::straight, exec_cluster_arrive,
     lower_cluster_barrier},
    {"barrier.cluster.wait!{.acquire}{.aligned}", "", OpClass::barrier, Flow::cluster_wait, exec_nothing,
     lower_cluster_barrier},
    {"st.async!{.weak}{.shared,.shared::cta,.shared::cluster}" COMPLETES "{.v2,.v4}.{b32,b64,u32,u64,s32,s64,f32,f64}",
     "[a], b, [c]", OpClass::store_shared, Flow::straight, exec_async_store, lower_async_store},
    {"red.async!.relaxed.cluster{.shared::cluster}" COMPLETES ".{inc,dec,min,max,and,or,xor,add}.{b32,u32,s32,u64,s64}",
     "[a], b, [c]", OpClass::atomic, Flow::straight, exec_async_reduction, lower_async_store},
};

}  // namespace

std::span<const InstructionRow> cluster_rows() {
    return kRows;
}

}  // namespace warpsim
