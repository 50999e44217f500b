// SIMD video instructions (vadd2, vadd4, vabsdiff4, vset2, ...): two or four parts of 16 or 8 bits.
#pragma once

#include "core/op.h"

namespace warpsim {

enum class VideoOp : uint8_t { add, sub, average, absolute_difference, min, max, eq, ne, lt, le, gt, ge };

// Op::imm, bit for bit.
struct VideoForm {
    VideoOp what = VideoOp::add;
    uint8_t signs = 0;      // bits 0, 1, 2: a, b and the result are signed
    bool saturate = false;  // to the range of the result's parts
    // bits 0 to 3: parts that are written, the others being c's; bit 4: instead, c plus the sum of these parts
    uint8_t mask = 0;
    uint8_t select[4] = {};  // by part: which of a's and b's parts, a's first, are the operands: 4 bits for each
};
static_assert(sizeof(VideoForm) == sizeof(Op::imm));
inline constexpr uint8_t kVideoSum = 16;

// dst, a, b, c: 32-bit slots.
void exec_video2(Warp &, const Op &);
void exec_video4(Warp &, const Op &);

}  // namespace warpsim
