// The tensor core's instructions: matrix fragments spread over the 32 lanes of a warp.
//
// A fragment register's slot is a matrix itself. Lane l = 4 * group + t holds, of an 8-row matrix, row `group` and the
// p = 4 bytes / element bytes columns from p * t on; lanes lie side by side in a slot, so the slot is that matrix in
// row-major order: 8x8 for 16-bit elements, 8x4 for tf32, 8x16 for 8-bit ones. Every shape is made of such tiles:
//   A, 16 x K: register i is rows 8 * (i % 2), columns 4p * (i / 2)     B, K x 8: register i is columns 0..7 (as the
//   tile's rows), rows 4p * i     C and D, 16 x 8: an 8x8 tile of pairs of neighbours, columns 2t and 2t + 1, in
//   registers 2i and 2i + 1 (32-bit) or in both halves of register i (f16), rows 8 * i
#pragma once

#include <string_view>

#include "exec/op.h"

namespace warpsim {

// mma.sync.aligned. Op::list: the slots of D, A, B, C, in that order. extra: kMmaSaturate.
inline constexpr uint32_t kMmaSaturate = 1;  // .satfinite of the integer forms
struct MmaForm {
    std::string_view name;  // "m16n8k16.row.col.f32.f16.f16.f32"
    Handler fn;
    uint8_t d, a, b, c;  // registers of each fragment
};
const MmaForm *find_mma(std::string_view name);  // nullptr: no such form

// ldmatrix, stmatrix: list: the fragment's slots (1, 2 or 4), a: address slot, imm: offset, extra: these flags.
inline constexpr uint32_t kMatrixTranspose = 1, kMatrixGeneric = 2, kMatrixAddress64 = 4;
void exec_ldmatrix(Warp &, const Op &);
void exec_stmatrix(Warp &, const Op &);
void exec_movmatrix(Warp &, const Op &);  // dst, a

}  // namespace warpsim
