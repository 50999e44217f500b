// Scalar video instructions (vadd, vshl, vmad, vset, ...): of a byte, a half or the whole of each source.
#pragma once

#include "core/op.h"

namespace warpsim {

enum class ScalarVideoOp : uint8_t { add, sub, absolute_difference, min, max, shl, shr, mad, eq, ne, lt, le, gt, ge };

// A part of a 32-bit register: all of it, .b0 to .b3, .h0 and .h1.
enum class VideoPart : uint8_t { word, b0, b1, b2, b3, h0, h1 };
enum class VideoSecond : uint8_t { none, add, min, max };  // what becomes of the result and c

// Op::imm, bit for bit.
struct ScalarVideoForm {
    ScalarVideoOp what = ScalarVideoOp::add;
    VideoPart a = VideoPart::word, b = VideoPart::word;
    VideoPart d = VideoPart::word;  // where the result is put into c
    VideoSecond second = VideoSecond::none;
    uint8_t shift = 0;  // vmad: .shr7 or .shr15
    bool a_signed : 1 = false, b_signed : 1 = false;
    bool d_signed : 1 = false;  // vmad: the operands say so; vset: never
    bool saturate : 1 = false;
    bool wrap : 1 = false;                                                  // shifts: b modulo 32
    bool minus_product : 1 = false, minus_c : 1 = false, plus : 1 = false;  // vmad; plus: .po, one more
};
static_assert(sizeof(ScalarVideoForm) <= sizeof(Op::imm));

void exec_scalar_video(Warp &, const Op &);  // dst, a, b, c: 32-bit slots; c may be missing

}  // namespace warpsim
