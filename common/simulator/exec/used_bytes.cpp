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
    if (shadow) {
        uint64_t address[kLanes];
        lane_addresses(w, op, address);
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
        // Aligned pieces of the used bytes, in the shadow's granules.
        const unsigned granule = w.block->program->shadow_granule;
        const auto used = [&](unsigned first, unsigned count) {
            for (unsigned g = first; g < first + count; g += granule)
                if (!(op.c >> g & ((1u << granule) - 1))) return false;
            return true;
        };
        for (unsigned first = 0; exec && first < bytes;) {
            if (!used(first, granule)) {
                first += granule;
                continue;
            }
            unsigned count = granule;
            while (first % (2 * count) == 0 && first + 2 * count <= bytes && used(first, 2 * count)) count *= 2;
            uint32_t piece[kLanes];
            for (unsigned lane = 0; lane < kLanes; ++lane) piece[lane] = offset[lane] + first;
            repeat_active(piece, exec);
            shadow->access(w, op, Access::read, piece, count, exec);
            first += count;
        }
        if (tracks_shared(w)) [[unlikely]]
            note_shared_load(w, op, data_slots(w, op, shape.count, op.dst), shape, offset, exec, op.c);
    }
    struct Restore {  // also where a hazard ends the launch
        Block &block;
        SharedShadow *shadow;
        ~Restore() { block.shadow = shadow; }
    } restore{*w.block, shadow};
    w.block->shadow = nullptr;
    load_handler(space, shape)(w, op);
    end_of_load(w);
}

}  // namespace warpsim
