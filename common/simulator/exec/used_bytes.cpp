#include "exec/used_bytes.h"

#include <algorithm>
#include <bit>

#include "exec/memory_access.h"
#include "exec/tracking_memory.h"

namespace warpsim {
namespace {

constexpr uint32_t kBytesShift = 16, kRegisterShift = 20, kCountShift = 24, kSignShift = 28;

AccessShape shape_of(const Op &op) {
    return {1u << (op.extra >> kBytesShift & 0xf), 1u << (op.extra >> kRegisterShift & 0xf),
            1u << (op.extra >> kCountShift & 0xf), (op.extra >> kSignShift & 1) != 0};
}

// Calls visit(first, count) for aligned pieces of the used bytes of what a lane reads, each a power of two of granules.
template <class Visit>
void each_piece(const Op &op, unsigned bytes, unsigned granule, Visit visit) {
    const auto used = [&](unsigned first, unsigned count) {
        for (unsigned g = first; g < first + count; g += granule)
            if (!(op.c >> g & ((1u << granule) - 1))) return false;
        return true;
    };
    for (unsigned first = 0; first < bytes;) {
        if (!used(first, granule)) {
            first += granule;
            continue;
        }
        unsigned count = granule;
        while (first % (2 * count) == 0 && first + 2 * count <= bytes && used(first, 2 * count)) count *= 2;
        visit(first, count);
        first += count;
    }
}

}  // namespace

uint32_t packed_shape(MemorySpace space, const AccessShape &shape) {
    const auto log = [](unsigned n) { return static_cast<uint32_t>(std::countr_zero(n)); };
    return static_cast<uint32_t>(space) << kSpaceShift | log(shape.bytes) << kBytesShift |
           log(shape.register_bytes) << kRegisterShift | log(shape.count) << kCountShift |
           static_cast<uint32_t>(shape.sign) << kSignShift;
}

void exec_load_of_used_bytes(Warp &w, const Op &op) {
    const MemorySpace space = space_of(op);
    const AccessShape shape = shape_of(op);
    const unsigned bytes = shape.bytes * shape.count;
    // The load itself looks at addresses and counts; a bad address is its to report.
    SharedShadow *const shadow = w.block->shadow;
    GlobalShadow *const global_shadow = w.block->global_shadow;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    if (shadow && space != MemorySpace::global) {
        uint32_t offset[kLanes] = {}, exec = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            uint64_t at = address[lane];
            if (space == MemorySpace::generic) {
                if ((at & kWindowMask) != kSharedWindow) continue;
                at &= ~kWindowMask;
            } else if (op.a == kNoSlot || (op.extra & kBase32)) {
                at = static_cast<uint32_t>(at);
            }
            const uint32_t size = w.block->shared_bytes;
            if (at % bytes || at >= size || size - at < bytes) continue;
            offset[lane] = static_cast<uint32_t>(at);
            exec |= w.exec & 1u << lane;
        }
        each_piece(op, bytes, w.block->program->shadow_granule, [&](unsigned first, unsigned count) {
            if (!exec) return;
            uint32_t piece[kLanes];
            for (unsigned lane = 0; lane < kLanes; ++lane) piece[lane] = offset[lane] + first;
            repeat_active(piece, exec);
            shadow->access(w, op, Access::read, piece, count, exec);
        });
        if (tracks_shared(w)) [[unlikely]]
            note_shared_load(w, op, data_slots(w, op, shape.count, op.dst), shape, offset, exec, op.c);
    }
    struct Restore {  // also where a hazard ends the launch
        Block &block;
        SharedShadow *shadow;
        GlobalShadow *global_shadow;
        ~Restore() {
            block.shadow = shadow;
            block.global_shadow = global_shadow;
        }
    };
    {
        const Restore restore{*w.block, shadow, global_shadow};
        w.block->shadow = nullptr;
        w.block->global_shadow = nullptr;
        load_handler(space, shape)(w, op);
    }
    const uint32_t global = !global_shadow                  ? 0
                            : space == MemorySpace::global  ? w.exec
                            : space == MemorySpace::generic ? split_generic(address, w.exec).global
                                                            : 0;
    each_piece(op, bytes, w.block->program->global_granule, [&](unsigned first, unsigned count) {
        if (!global) return;
        uint64_t piece[kLanes];
        for (unsigned lane = 0; lane < kLanes; ++lane) piece[lane] = address[lane] + first;
        repeat_active(piece, global);
        global_shadow->access(w, op, global_flags(op, false), piece, count, global);
    });
    end_of_load(w);
}

}  // namespace warpsim
