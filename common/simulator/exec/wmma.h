// wmma.load and wmma.store: whole matrices between memory and fragments.
//
// The manual leaves the places of a wmma fragment's elements open, so a GPU's may be others. Here they are those of
// mma.sync (exec/mma.h): m16n16 is two mma of 8 columns side by side, m32n8 two of 16 rows one above the other, m8n32
// the same transposed (B's transpose times A's), and wmma.mma becomes these mma. Registers that a form has beyond those
// (.f16) repeat the others. So elements of fragments of one shape lie at the same index whatever their type.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/op.h"

namespace warpsim {

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
