// Tensor maps that a kernel changes: tensormap.replace, tensormap.cp_fenceproxy and the fence that must stand between a
// change and the first copy that uses the map.
//
// The asynchronous proxy may still have the old 128 bytes: a block that has changed a map in global memory and uses it
// without fence.proxy.tensormap::generic.acquire is reported (check_map_changes).
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "core/tensor_map.h"
#include "core/text.h"
#include "core/warp.h"
#include "hazard/shared_shadow.h"
#include "instructions/bulk_copy/bulk_copy.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/completions.h"
#include "machine/core_ops.h"
#include "machine/late_stores.h"
#include "memory/global_memory.h"

namespace warpsim {

enum class MapField : uint8_t { address, dimensions, box, size, stride, step, type, swizzle, fill, interleave };

// Op::extra of tensormap.replace: the map's address is in a and imm, the new value in slot b (kNoSlot: `value`).
struct MapForm {
    MapField field = MapField::address;
    uint8_t dimension = 0;  // of box, size, stride (from 1 on) and step
    uint8_t value = 0;      // of type, swizzle, fill and interleave, as core/tensor_map.h numbers them
    MemorySpace space : 4 = MemorySpace::generic;
    bool base32 : 1 = false;
};
static_assert(sizeof(MapForm) <= sizeof(Op::extra));

void exec_map_replace(Warp &, const Op &);
// tensormap.cp_fenceproxy: to (a and imm) from what the list says, both generic or offsets as their spaces are.
enum MapCopySlot : uint32_t { kMapSource, kMapSourceOffset, kMapSourceBase32, kMapCopyListLength };
void exec_map_copy(Warp &, const Op &);
void exec_map_acquire(Warp &, const Op &);  // fence.proxy.tensormap::generic.acquire

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
    if (w.block->shadow) w.block->shadow->fence(w, w.exec, false);
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

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

constexpr uint8_t kMissing = 0xff;

struct Field {
    const char *name;
    MapField field;
    bool wide = false, ordered = false, constant = false;  // 64 bits; one for each dimension; the value is a constant
    std::array<uint8_t, 16> of{};                          // of constants, by the manual's number: ours, kMissing
};

constexpr std::array<uint8_t, 16> numbers(std::initializer_list<uint8_t> list) {
    std::array<uint8_t, 16> all{};
    all.fill(kMissing);
    size_t at = 0;
    for (uint8_t number : list) all[at++] = number;
    return all;
}

constexpr uint8_t type_number(TensorType type) {
    return uint8_t(type);
}

// The manual's types from 13 on are newer than Hopper.
constexpr Field kFields[] = {
    {"global_address", MapField::address, true},
    {"rank", MapField::dimensions},
    {"box_dim", MapField::box, false, true},
    {"global_dim", MapField::size, false, true},
    {"global_stride", MapField::stride, true, true},
    {"element_stride", MapField::step, false, true},
    {"elemtype", MapField::type, false, false, true,
     numbers({0, 1, 2, 3, 4, 5, 6, 7, type_number(TensorType::f32_ftz), type_number(TensorType::f64),
              type_number(TensorType::bf16), type_number(TensorType::tf32), type_number(TensorType::tf32_ftz)})},
    {"swizzle_mode", MapField::swizzle, false, false, true, numbers({0, 1, 2, 3})},
    {"fill_mode", MapField::fill, false, false, true, numbers({0, 1})},
    {"interleave_layout", MapField::interleave, false, false, true, numbers({0, 1, 2})},
};

const Field &field_of(Lowering &l, const Instruction &in) {
    for (const Field &field : kFields)
        if (in.has(field.name)) return field;
    l.unsupported(in);
}

bool is_base32(const Lowering::Address &address) {
    return address.slot != kNoSlot && address.slot_bytes == 4;
}

// A symbol in shared memory is an offset there: with generic addressing its window comes on top.
int64_t generic_offset(const Lowering::Address &address, bool is_symbol, bool generic) {
    const bool shared = is_symbol && generic && address.space_of_symbol == ptx::Space::shared;
    return address.offset + (shared ? int64_t(kSharedWindow) : 0);
}

// tensormap.replace.tile.field{.ss}.b1024.type [map]{, ordinal}, value
void lower_map_replace(Lowering &l, const Instruction &in) {
    const Field &field = field_of(l, in);
    MapForm form;
    form.field = field.field;
    form.space = in.has("global")        ? MemorySpace::global
                 : in.has("shared::cta") ? MemorySpace::shared
                                         : MemorySpace::generic;
    const Operand &value = in.operands.back();
    if (field.ordered) {
        const int64_t ordinal = in.operands[1].integer, first = field.field == MapField::stride;
        if (ordinal < 0 || ordinal + first >= int64_t(kMostDimensions))
            l.unsupported(in, "the ordinal is 0 to 4, and 0 to 3 for global_stride, which dimension 0 has not");
        form.dimension = uint8_t(ordinal + first);
    }
    const Lowering::Address map = l.address(in.operands[0]);
    form.base32 = is_base32(map);
    uint32_t slot = kNoSlot;
    if (field.constant) {
        const uint64_t number = uint64_t(value.integer);
        form.value = number < field.of.size() ? field.of[number] : kMissing;
        if (form.value == kMissing) l.unsupported(in, "no map here can have that: it is newer than sm_90");
    } else {
        slot = l.source(value, field.wide ? Type::b64 : Type::b32);
    }
    Op &op = l.emit_row(in);
    op.a = map.slot;
    op.b = slot;
    op.imm = generic_offset(map, in.operands[0].elements[0].kind == Operand::Kind::symbol,
                            form.space == MemorySpace::generic);
    op.extra = pack<uint32_t>(form);
}

// tensormap.cp_fenceproxy.global.shared::cta... [to], [from], 128
void lower_map_copy(Lowering &l, const Instruction &in) {
    if (in.operands[2].integer != kTensorMapBytes) l.unsupported(in, "the size is 128");
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]);
    const uint32_t list = l.list({from.slot, uint32_t(from.offset), uint32_t(is_base32(from))});
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.list = list;
    op.list_count = kMapCopyListLength;
    op.extra = is_base32(to) ? kBase32 : 0;
}

void lower_map_acquire(Lowering &l, const Instruction &in) {
    if (in.operands[1].integer != kTensorMapBytes) l.unsupported(in, "the size is 128");
    const Lowering::Address map = l.address(in.operands[0]);
    Op &op = l.emit_row(in);
    op.a = map.slot;
    op.imm = map.offset;
    op.extra = is_base32(map) ? kBase32 : 0;
}

#define MAP_FIELD(FIELD, TYPE, OPERANDS)                                    \
    {"tensormap.replace.tile." FIELD "!{.global,.shared::cta}.b1024." TYPE, \
     OPERANDS,                                                              \
     OpClass::other,                                                        \
     Flow::straight,                                                        \
     exec_map_replace,                                                      \
     lower_map_replace}

constexpr InstructionRow kRows[] = {
    MAP_FIELD("global_address", "b64", "[a], b"),
    MAP_FIELD("rank", "b32", "[a], b"),
    MAP_FIELD("{box_dim,global_dim,element_stride}", "b32", "[a], i, b"),
    MAP_FIELD("global_stride", "b64", "[a], i, b"),
    MAP_FIELD("{elemtype,interleave_layout,swizzle_mode,fill_mode}", "b32", "[a], i"),
    {"tensormap.cp_fenceproxy!.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync.aligned",
     "[a], [b], i", OpClass::fence, Flow::warp_sync, exec_map_copy, lower_map_copy},
    {"fence.proxy!.tensormap::generic.acquire.{cta,cluster,gpu,sys}", "[a], i", OpClass::fence, Flow::straight,
     exec_map_acquire, lower_map_acquire},
};

}  // namespace

std::span<const InstructionRow> tensor_map_rows() {
    return kRows;
}

}  // namespace warpsim
