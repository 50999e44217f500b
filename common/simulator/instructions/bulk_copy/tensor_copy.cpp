#include "instructions/bulk_copy/bulk_copy.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "core/names.h"
#include "core/program.h"
#include "core/text.h"
#include "counters/accesses.h"
#include "machine/completions.h"
#include "machine/global_hazards.h"
#include "machine/late_stores.h"
#include "memory/global_memory.h"

namespace warpsim {
namespace {

using std::to_string;

constexpr unsigned kPointer = 64;  // bits

TensorForm form_of(const Op &op) {
    return unpack<TensorForm>(op.extra);
}

// "the TMA copy at kernel.cu:12"
std::string name_of(const Warp &w, const Op &op) {
    return std::string("the ") + copy_noun(op.cls) + " at " + where(*w.block->program, op.index);
}

bool refuse(Warp &w, const Op &op, HazardKind kind, unsigned lane, uint64_t address, const std::string &text) {
    report_hazard(w, op, kind, int(lane), address, name_of(w, op) + " " + text);
    return false;
}

// The 128 bytes at a generic address; null where no map may be, which has been reported.
const std::byte *map_bytes(Warp &w, const Op &op, unsigned lane, uint64_t address) {
    const auto wrong = [&](HazardKind kind, const std::string &text) {
        refuse(w, op, kind, lane, address, "has its tensor map at " + hex(address) + text);
        return nullptr;
    };
    const std::string places =
        ": a tensor map is a const __grid_constant__ parameter, or lies in constant or global "
        "memory";
    const uint64_t offset = address & ~kWindowMask;
    if (address % kTensorMapAlignment)
        return wrong(HazardKind::misaligned, ", which is no multiple of 64 (CUtensorMap has alignas for that)");
    switch (address & kWindowMask) {
        case kLocalWindow:
            return wrong(HazardKind::invalid_address,
                         ", in the thread's local memory" + places +
                             ". A parameter without __grid_constant__ is copied there when its address is taken");
        case kSharedWindow:
            return wrong(HazardKind::invalid_address, ", in shared memory" + places);
        case kParamWindow:
            if (offset + kTensorMapBytes <= w.block->program->parameter_bytes) return w.params + offset;
            return wrong(HazardKind::out_of_bounds, ", past the end of the kernel's parameters");
        default:
            break;
    }
    if (!check_map_changes(w, op, lane, address)) return nullptr;
    show_stores(w);
    const AllocationView *view = w.block->global->find(address);
    if (view && view->contains(address, kTensorMapBytes)) return view->at(address);
    const std::string why = w.block->global->explain(address, kTensorMapBytes);
    return wrong(address < 4096 ? HazardKind::invalid_address : HazardKind::out_of_bounds, ": " + why);
}

bool read_map(Warp &w, const Op &op, unsigned lane, uint64_t address, TensorMap &map) {
    const std::byte *bytes = map_bytes(w, op, lane, address);
    if (!bytes) return false;
    const auto wrong = [&](const std::string &text) {
        return refuse(w, op, HazardKind::invalid_argument, lane, address, text);
    };
    if (!decode_tensor_map(bytes, map)) {
        const bool zero = std::all_of(bytes, bytes + kTensorMapBytes, [](std::byte b) { return b == std::byte{0}; });
        return wrong("finds no tensor map at " + hex(address) + ": the 128 bytes there are " +
                     (zero ? "all 0" : "not what cuTensorMapEncodeTiled has made, or have been changed since"));
    }
    if (const std::string fault = tensor_map_fault(map); !fault.empty())
        return wrong("has a tensor map that cannot be: " + fault);
    const unsigned dimensions = form_of(op).dimensions;
    if (map.dimensions != dimensions)
        return wrong("is one of " + to_string(dimensions) + (dimensions == 1 ? " dimension" : " dimensions") +
                     ", and its tensor map has " + to_string(map.dimensions));
    const uint32_t row = map.box[0] * map.element_bytes(), span = swizzle_bytes(map.swizzle);
    if (!map.interleaved() && row < span)
        return wrong("has a tensor map with rows of " + to_string(row) + " bytes and a swizzle of " + to_string(span) +
                     ": how such rows lie in shared memory is not known, and warpsim does not guess. Make a row of "
                     "the box as wide as the swizzle, or take a narrower swizzle");
    return true;
}

// The rows' host addresses; false: some are no memory, which has been reported.
bool find_rows(Warp &w, const Op &op, unsigned lane, Intent intent, const Coordinates &at, TensorBox &box) {
    if (box.rows.empty()) return true;
    const GlobalMemory &memory = *w.block->global;
    show_stores(w);
    if (w.block->pending) w.block->pending->meet(box.first, box.last, intent == Intent::atomic);
    const bool checked = intent == Intent::read && !w.block->completions->stores.empty();
    const AllocationView *view = memory.find(box.first);
    const bool one = view && view->contains(box.first, box.last - box.first + 1);
    for (BoxRow &row : box.rows) {
        if (!one) view = memory.find(row.global);
        const bool there = view && view->contains(row.global, row.bytes);
        if (!there || (view->kind == MemoryKind::module_const && intent != Intent::read)) {
            std::string corner;
            for (unsigned d = 0; d < form_of(op).dimensions; ++d) corner += (d ? ", " : "") + to_string(at[d]);
            const std::string text =
                std::string(intent == Intent::read ? "reads " : "writes ") + to_string(row.bytes) + " bytes at " +
                hex(row.global) + ", a row of the box at {" + corner +
                "} that belongs to the tensor, as its map has it: " +
                (there ? "constant memory cannot be written" : memory.explain(row.global, row.bytes));
            return refuse(w, op, HazardKind::out_of_bounds, lane, row.global, text);
        }
        if (checked) check_unfinished_stores(w, op, row.global, row.global + row.bytes - 1);
        row.host = view->at(row.global);
    }
    return true;
}

// One lane's copy: its map, its box and where that lies in shared memory.
struct Copy {
    TensorMap map;
    TensorBox box;
    uint32_t shared = 0;
};

void log_box(Warp &w, const Op &op, unsigned lane, const Copy &copy, const Coordinates &at) {
    BoxRecord *record = w.accesses->box(op, lane);
    if (!record) return;
    const TensorMap &map = copy.map;
    record->kind = form_of(op).kind;
    record->shared = copy.shared;
    record->swizzle = swizzle_bytes(map.swizzle);
    record->element = map.pitch();
    uint64_t rows = 1;
    for (unsigned d = 0; d < map.dimensions; ++d) {
        record->coordinates.push_back(at[d]);
        record->counts.push_back(map.count(d));
        rows *= d ? map.count(d) : 1;
    }
    record->rows.resize(rows);
    const uint32_t bytes = uint32_t(copy.box.bytes / rows);
    for (const BoxRow &row : copy.box.rows) {
        std::optional<uint64_t> &first = record->rows[row.at / bytes];
        if (!first) first = row.global;
    }
    record->sectors = copy.box.sectors;
}

// Coordinates that the hardware does not take; "": it takes them. Of prefetches that is not known.
std::string coordinate_fault(const TensorForm &form, const TensorMap &map, const Coordinates &at, Intent intent) {
    if (form.kind == BulkKind::prefetch) return "";
    const bool writes = intent != Intent::read;
    const std::string box = std::string(writes ? "stores" : "loads") + " a box at coordinate ";
    const auto first = at.begin(),
               negative = std::find_if(first, first + form.dimensions, [](int32_t c) { return c < 0; });
    if (writes && negative != first + form.dimensions)
        return box + to_string(*negative) + " of dimension " + to_string(negative - first) +
               ": a store is clipped at the upper edges of the tensor alone, and a negative coordinate is an illegal "
               "instruction (a load fills what lies before the edge)";
    const int32_t elements = int32_t(kGranularity / map.element_bytes());  // a power of two
    if (!map.interleaved() && at[0] % elements)
        return box + to_string(at[0]) +
               " of dimension 0: a box begins at a multiple of 16 bytes of the tensor's row, " + to_string(elements) +
               " elements of " + tensor_type_name(map.type) + ", and anything between is an illegal instruction";
    return "";
}

// Rows that lie one behind the other are one stretch of memory.
void note_rows(Warp &w, const Op &op, unsigned lane, Intent intent, const TensorBox &box) {
    GlobalShadow *const shadow = w.block->global_shadow;
    for (size_t i = 0; shadow && i < box.rows.size();) {
        const uint64_t begin = box.rows[i].global;
        uint64_t end = begin;
        while (i < box.rows.size() && box.rows[i].global == end) end += box.rows[i++].bytes;
        shadow->access_range(w, op, copy_flags(intent), lane, begin, end - begin);
    }
}

// Maps, coordinates and addresses of each lane's copy, checked and counted; calls `each` for the good ones.
template <class F>
void for_each_box(Warp &w, const Op &op, Intent shared_intent, Intent global_intent, F each) {
    const TensorForm form = form_of(op);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    uint64_t maps[kLanes], shared[kLanes];
    const int64_t offset = int64_t(list[kTensorMapLow] | uint64_t(list[kTensorMapHigh]) << (kPointer / 2));
    lane_addresses(w, with_address(op, list[kTensorMap], offset, form.map_base32), maps);
    if (form.kind != BulkKind::prefetch) lane_addresses(w, with_address(op, op.a, op.imm, form.shared_base32), shared);
    // Of a store that several lanes ask for, each of them writes the same bytes: it is looked at once.
    std::set<std::tuple<uint64_t, uint64_t, Coordinates>> stores;
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        Copy copy;
        if (!read_map(w, op, lane, maps[lane], copy.map)) continue;
        Coordinates at{};
        for (unsigned d = 0; d < form.dimensions; ++d) at[d] = w.lanes<int32_t>(list[kTensorCoordinates + d])[lane];
        if (const std::string fault = coordinate_fault(form, copy.map, at, global_intent); !fault.empty()) {
            refuse(w, op, HazardKind::illegal_instruction, lane, maps[lane], fault);
            continue;
        }
        copy.box = make_box(copy.map, at);
        if (form.kind != BulkKind::prefetch) {
            if (shared[lane] % kBoxAlignment) {
                refuse(w, op, HazardKind::misaligned, lane, shared[lane],
                       "has its box at shared " + hex(shared[lane]) +
                           ": the address of a box in shared memory is a multiple of 128 (__align__(128))");
                continue;
            }
            if (!in_shared(w, op, shared_intent, lane, shared[lane], copy.box.bytes)) continue;
            copy.shared = uint32_t(shared[lane]);
        }
        if (!find_rows(w, op, lane, global_intent, at, copy.box)) continue;
        const bool again = global_intent == Intent::write && !std::has_single_bit(w.exec) &&
                           !stores.insert({maps[lane], shared[lane], at}).second;
        if (form.kind != BulkKind::prefetch && !again) note_rows(w, op, lane, global_intent, copy.box);
        OpStats &stats = w.stats[op.index];
        ++stats.bulk_copies;
        stats.bulk_bytes += copy.box.bytes;
        stats.tensor_sectors += copy.box.sectors;
        if (w.accesses) [[unlikely]]
            log_box(w, op, lane, copy, at);
        each(lane, copy);
    }
}

// Null: no part of the box lies inside the tensor.
BulkStore *issue_store(Warp &w, const Op &op, unsigned lane, const Copy &copy) {
    std::vector<StorePart> parts;
    for (const BoxPiece &piece : pieces_of(copy.map, copy.box, copy.shared))
        parts.push_back({piece.at, piece.bytes, piece.global, piece.host});
    if (parts.empty()) return nullptr;
    return &issue_bulk_store(w, op, lane, copy.shared, copy.box.bytes, 0, nullptr, std::move(parts));
}

// Which operations there are on which elements, and the type that they are combined as.
bool reduces(BulkOperation operation, TensorType element, ptx::Type &as) {
    using enum TensorType;
    switch (element) {
        case u32:
            as = ptx::Type::u32;
            return true;
        case s32:
            as = ptx::Type::s32;
            break;
        case u64:
            as = ptx::Type::u64;
            break;
        case s64:
            as = ptx::Type::s64;
            break;
        case f32:
            as = ptx::Type::f32;
            return operation == BulkOperation::add;
        case f16:
        case bf16:
            as = element == f16 ? ptx::Type::f16 : ptx::Type::bf16;
            return operation == BulkOperation::add || operation == BulkOperation::min ||
                   operation == BulkOperation::max;
        default:
            return false;
    }
    const bool bits =
        operation == BulkOperation::and_ || operation == BulkOperation::or_ || operation == BulkOperation::xor_;
    if (bits) as = element == s32 ? ptx::Type::b32 : ptx::Type::b64;
    const bool counts = operation == BulkOperation::inc || operation == BulkOperation::dec;
    return !counts && (bits || operation != BulkOperation::add || element != s64);
}

}  // namespace

void exec_tensor_load(Warp &w, const Op &op) {
    const TensorForm form = form_of(op);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    const Op at_mbarrier =
        with_address(op, list[kTensorMbarrier], int32_t(list[kTensorMbarrierOffset]), form.mbarrier_base32);
    for_each_box(w, op, Intent::write, Intent::read, [&](unsigned lane, const Copy &copy) {
        issue_bulk_load(w, op, at_mbarrier, lane, copy.shared, load_box(copy.map, copy.box, copy.shared));
    });
}

void exec_tensor_store(Warp &w, const Op &op) {
    for_each_box(w, op, Intent::read, Intent::write,
                 [&](unsigned lane, const Copy &copy) { issue_store(w, op, lane, copy); });
}

// Combined at once, as bulk copies are; the source is in use until it is waited for.
void exec_tensor_reduce(Warp &w, const Op &op) {
    const BulkOperation operation = form_of(op).operation;
    for_each_box(w, op, Intent::read, Intent::atomic, [&](unsigned lane, const Copy &copy) {
        ptx::Type type;
        if (!reduces(operation, copy.map.type, type)) {
            refuse(w, op, HazardKind::invalid_argument, lane, copy.box.first,
                   std::string("combines elements of ") + tensor_type_name(copy.map.type) +
                       ", for which there is no such operation here");
            return;
        }
        BulkStore *store = issue_store(w, op, lane, copy);
        if (!store) return;
        read_source(*store);
        for (const StorePart &part : store->parts)
            combine(operation, type, part.host, store->data.data() + part.at, part.bytes);
        store->written = true;
    });
}

void exec_tensor_prefetch(Warp &w, const Op &op) {
    for_each_box(w, op, Intent::read, Intent::read, [](unsigned, const Copy &) {});
}

}  // namespace warpsim
