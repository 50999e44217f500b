#include "exec/tensor_map_ops.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/program.h"
#include "core/tensor_map.h"
#include "core/text.h"
#include "exec/bulk_copy.h"
#include "exec/completions.h"
#include "exec/late_stores.h"
#include "exec/pending_updates.h"
#include "exec/sync_ops.h"
#include "hazard/shared_shadow.h"
#include "memory/global_memory.h"

namespace warpsim {
namespace {

using std::to_string;

constexpr unsigned kPiece = 16;  // bytes of shared memory that the shadow looks at together

std::string text_of(const Warp &w, const Op &op) {
    return instruction_at(*w.block->program, op.index);
}

void refuse(Warp &w, const Op &op, HazardKind kind, unsigned lane, uint64_t address, const std::string &text) {
    report_hazard(w, op, kind, int(lane), address, text_of(w, op) + ' ' + text);
}

bool is_aligned(Warp &w, const Op &op, unsigned lane, uint64_t address) {
    if (address % kTensorMapAlignment == 0) return true;
    refuse(w, op, HazardKind::misaligned, lane, address,
           "has a tensor map at " + hex(address) + ", which is no multiple of 64 (CUtensorMap has alignas for that)");
    return false;
}

// The map's bytes in shared memory, as lanes of exec touch them; null: they are not there, which has been reported.
std::byte *in_shared_memory(Warp &w, const Op &op, Access access, unsigned lane, uint64_t offset, uint32_t exec) {
    const Intent intent = access == Access::read ? Intent::read : Intent::write;
    if (!is_aligned(w, op, lane, offset) || !in_shared(w, op, intent, lane, offset, kTensorMapBytes)) return nullptr;
    for (uint32_t at = 0; w.block->shadow && at < kTensorMapBytes; at += kPiece) {
        uint32_t address[kLanes];
        std::fill_n(address, kLanes, uint32_t(offset) + at);
        w.block->shadow->access(w, op, access, address, kPiece, exec);
    }
    return w.block->shared + offset;
}

std::byte *in_global_memory(Warp &w, const Op &op, unsigned lane, uint64_t address) {
    if (!is_aligned(w, op, lane, address)) return nullptr;
    show_stores(w);
    const AllocationView *view = w.block->global->find(address);
    if (view && view->contains(address, kTensorMapBytes) && view->kind != MemoryKind::module_const) {
        if (w.block->pending) w.block->pending->meet(address, address + kTensorMapBytes - 1, false);
        return view->at(address);
    }
    refuse(w, op, address < 4096 ? HazardKind::invalid_address : HazardKind::out_of_bounds, lane, address,
           "writes a tensor map at " + hex(address) + ": " +
               (view ? "constant memory cannot be written" : w.block->global->explain(address, kTensorMapBytes)));
    return nullptr;
}

// What cannot be at all; the rest of a map's faults show where it is used, for several fields may change together.
bool set_field(TensorMap &map, const MapForm &form, uint64_t value) {
    const auto small = [&](uint64_t most) { return uint32_t(std::min(value, most)); };
    switch (form.field) {
        case MapField::address:
            map.address = value;
            return true;
        case MapField::dimensions:
            map.dimensions = small(UINT8_MAX - 1) + 1;
            return true;
        case MapField::box:
            map.box[form.dimension] = uint32_t(value);
            return true;
        case MapField::size:
            map.size[form.dimension] = value;
            return value != 0;
        case MapField::stride:
            map.stride[form.dimension] = value;
            return true;
        case MapField::step:
            map.step[form.dimension] = small(UINT8_MAX);
            return true;
        case MapField::type:
            map.type = TensorType(form.value);
            return true;
        case MapField::swizzle:
            map.swizzle = TensorSwizzle(form.value);
            return true;
        case MapField::fill:
            map.fill = TensorFill(form.value);
            return true;
        case MapField::interleave:
            map.interleave = TensorInterleave(form.value);
            return true;
    }
    return false;
}

}  // namespace

void exec_map_replace(Warp &w, const Op &op) {
    const MapForm form = unpack<MapForm>(op.extra);
    uint64_t addresses[kLanes];
    lane_addresses(w, with_address(op, op.a, op.imm, form.base32), addresses);
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        uint64_t address = addresses[lane];
        bool shared = form.space == MemorySpace::shared;
        if (form.space == MemorySpace::generic) {
            const uint64_t window = address & kWindowMask;
            shared = window == kSharedWindow;
            if (shared) address -= kSharedWindow;
            if (window == kLocalWindow || window == kParamWindow) {
                refuse(
                    w, op, HazardKind::invalid_address, lane, address,
                    "has its tensor map in local memory or in the parameters: it must be in shared or global memory");
                continue;
            }
        }
        std::byte *bytes = shared ? in_shared_memory(w, op, Access::write, lane, address, 1u << lane)
                                  : in_global_memory(w, op, lane, address);
        if (!bytes) continue;
        TensorMap map;
        if (!decode_tensor_map(bytes, map)) {
            refuse(w, op, HazardKind::invalid_argument, lane, address,
                   "finds no tensor map at " + hex(address) +
                       ": a field can be replaced in a copy of what cuTensorMapEncodeTiled has made");
            continue;
        }
        uint64_t value = 0;
        if (op.b != kNoSlot) {
            const bool wide = form.field == MapField::address || form.field == MapField::stride;
            value = wide ? w.lanes<uint64_t>(op.b)[lane] : w.lanes<uint32_t>(op.b)[lane];
        }
        if (!set_field(map, form, value)) {
            refuse(w, op, HazardKind::invalid_argument, lane, address,
                   "makes the tensor 0 elements long in dimension " + to_string(form.dimension));
            continue;
        }
        encode_tensor_map(map, bytes);
        if (!shared) w.block->completions->changed_maps[address] = op.index;
    }
}

// The whole warp asks for one copy.
void exec_map_copy(Warp &w, const Op &op) {
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    uint64_t to[kLanes], from[kLanes];
    lane_addresses(w, with_address(op, op.a, op.imm, op.extra & kBase32), to);
    lane_addresses(w, with_address(op, list[kMapSource], int32_t(list[kMapSourceOffset]), list[kMapSourceBase32]),
                   from);
    const unsigned first = unsigned(std::countr_zero(w.exec));
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (to[lane] == to[first] && from[lane] == from[first]) continue;
        return refuse(w, op, HazardKind::invalid_argument, lane, to[lane],
                      "has other addresses in lane " + to_string(lane) + " than in lane " + to_string(first) +
                          ": the whole warp asks for one copy");
    }
    const std::byte *source = in_shared_memory(w, op, Access::read, first, from[first], w.exec);
    std::byte *destination = source ? in_global_memory(w, op, first, to[first]) : nullptr;
    if (!destination) return;
    std::memcpy(destination, source, kTensorMapBytes);
    w.block->completions->changed_maps[to[first]] = op.index;
}

void exec_map_acquire(Warp &w, const Op &op) {
    exec_fence(w, op);
    auto &changed = w.block->completions->changed_maps;
    uint64_t addresses[kLanes];
    lane_addresses(w, op, addresses);
    for (uint32_t rest = w.exec; rest && !changed.empty(); rest &= rest - 1)
        changed.erase(addresses[std::countr_zero(rest)]);
}

bool check_map_changes(Warp &w, const Op &op, unsigned lane, uint64_t address) {
    const auto &changed = w.block->completions->changed_maps;
    const auto found = changed.find(address);
    if (found == changed.end()) return true;
    const Program &program = *w.block->program;
    report_hazard(w, op, HazardKind::proxy_fence, int(lane), address,
                  "the copy at " + where(program, op.index) + " uses the tensor map at " + hex(address) + ", which " +
                      program.debug[found->second].text + " at " + where(program, found->second) +
                      " has changed, without fence.proxy.tensormap::generic.acquire for it in between: the copy may "
                      "still see the old map");
    return false;
}

}  // namespace warpsim
