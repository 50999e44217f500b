// The tensor core's instructions: matrix fragments spread over the 32 lanes of a warp.
//
// A fragment register's slot is a matrix itself. Lane l = 4 * group + t holds, of an 8-row matrix, row `group` and the
// p = 4 bytes / element bytes columns from p * t on; lanes lie side by side in a slot, so the slot is that matrix in
// row-major order: 8x8 for 16-bit elements, 8x4 for tf32, 8x16 for 8-bit ones. Every shape is made of such tiles:
//   A, 16 x K: register i is rows 8 * (i % 2), columns 4p * (i / 2)     B, K x 8: register i is columns 0..7 (as the
//   tile's rows), rows 4p * i     C and D, 16 x 8: an 8x8 tile of pairs of neighbours, columns 2t and 2t + 1, in
//   registers 2i and 2i + 1 (32-bit) or in both halves of register i (f16), rows 8 * i
//
// wmma.load and wmma.store: whole matrices between memory and fragments.
//
// The manual leaves the places of a wmma fragment's elements open, so a GPU's may be others. Here they are those of
// mma.sync (instructions/mma/mma.h): m16n16 is two mma of 8 columns side by side, m32n8 two of 16 rows one above the
// other, m8n32 the same transposed (B's transpose times A's), and wmma.mma becomes these mma. Registers that a form has
// beyond those
// (.f16) repeat the others. So elements of fragments of one shape lie at the same index whatever their type.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/op.h"
#include "core/op_formats.h"
#include "definedness/rules.h"

namespace warpsim {

struct MmaForm {
    std::string_view name;  // "m16n8k16.row.col.f32.f16.f16.f32"
    Handler fn;
    uint8_t d, a, b, c;  // registers of each fragment
};
const MmaForm *find_mma(std::string_view name);         // nullptr: no such form
const MmaForm *find_mma_small(std::string_view name);   // 8 rows, and single bits: instructions/mma/mma_small.cpp
const MmaForm *find_mma_double(std::string_view name);  // those of f64: instructions/mma/mma_small.cpp

// mma: an element by its row of A, its column of B and its element of C.
void passes_mma(Warp &, const Op &, const DataFlow &, uint32_t lanes);

// One matrix of one shape and layout.
struct WmmaMatrix {
    static constexpr unsigned kMostElements = 16;
    unsigned bytes = 0;          // of an element
    unsigned elements = 0;       // of a lane, those that repeat others not counted
    unsigned lines = 0;          // rows in memory, columns if it lies column by column
    unsigned line_elements = 0;  // that lie side by side
    unsigned run = 0;            // elements that a lane moves at once
    unsigned packed = 1;         // elements narrower than a byte: an element here is a word of so many

    struct Place {
        uint8_t line = 0, at = 0;
    };
    Place held[kMostElements][kLanes];  // by element of a lane: where the fragment's element lies
    // Where what the lane moves lies: its own elements, but for tiles of 16-bit elements that come transposed:
    // loads take them as ldmatrix.trans does.
    Place moved[kMostElements][kLanes];
};

// use: 'a', 'b', 'c' (also D); shape: "m16n16k16", ...; row: of layout .row. -1: no such matrix.
int find_wmma_matrix(char use, std::string_view shape, unsigned element_bytes, bool row);
const WmmaMatrix &wmma_matrix(unsigned index);

// list: the fragment's slots; a, imm: the address; b: slot of the stride in elements (32 bits); extra: kBase32, the
// MemorySpace at kSpaceShift, the matrix's index at kWmmaMatrixShift.
inline constexpr uint32_t kWmmaMatrixShift = 16;
void exec_wmma_load(Warp &, const Op &);
void exec_wmma_store(Warp &, const Op &);

// Accumulators of f16 and f32 in one instruction. a: the f16 pairs; dst, b: the even and the odd elements.
void exec_wmma_widen(Warp &, const Op &);
// dst: the f16 pairs; a, b: the even and the odd elements.
void exec_wmma_narrow(Warp &, const Op &);

}  // namespace warpsim
