// How a block barrier op is encoded: a: slot of the barrier's number, b: slot of the thread count (kNoSlot: the whole
// block), c and dst: of bar.red. extra: BarrierForm below.
#pragma once

#include <cstdint>

namespace warpsim {

enum class BarrierKind : uint8_t { sync, arrive, red_popc, red_and, red_or };

struct BarrierForm {
    BarrierKind kind = BarrierKind::sync;
    bool aligned = true;  // all lanes of a warp must execute the same instruction
    uint32_t pack() const { return uint32_t(kind) | uint32_t(aligned) << 8; }
    static BarrierForm unpack(uint32_t extra) { return {BarrierKind(extra & 0xff), (extra >> 8 & 1) != 0}; }
};

}  // namespace warpsim
