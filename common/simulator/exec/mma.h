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

#include "core/op.h"
#include "core/op_formats.h"

namespace warpsim {

struct MmaForm {
    std::string_view name;  // "m16n8k16.row.col.f32.f16.f16.f32"
    Handler fn;
    uint8_t d, a, b, c;  // registers of each fragment
};
const MmaForm *find_mma(std::string_view name);         // nullptr: no such form
const MmaForm *find_mma_small(std::string_view name);   // 8 rows, and single bits: exec/mma_small.cpp
const MmaForm *find_mma_double(std::string_view name);  // those of f64: exec/mma_double.cpp

void exec_ldmatrix(Warp &, const Op &);
void exec_stmatrix(Warp &, const Op &);
void exec_movmatrix(Warp &, const Op &);  // dst, a

}  // namespace warpsim
