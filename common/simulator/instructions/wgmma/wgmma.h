// wgmma and setmaxnreg, which a warpgroup executes together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "definedness/rules.h"
#include "machine/completions.h"

namespace warpsim {

void exec_wgmma(Warp &first, const Op &);  // instructions/wgmma/wgmma.cpp; for all four warps
void exec_wgmma_fence(Warp &, const Op &);
void exec_wgmma_commit(Warp &, const Op &);
void exec_wgmma_wait(Warp &, const Op &);
void exec_set_max_registers(Warp &first, const Op &);  // never called: the registers may have to be waited for

struct WgmmaForm;
struct WgmmaTile;

// After a wgmma of these four warps: D is undefined in the rows and columns whose operands hold bytes in shared memory
// that are. A is null where it lies in registers.
void note_wgmma_tiles(Warp *const (&warps)[4], const Op &, const WgmmaForm &, const WgmmaTile *a, const WgmmaTile &b);

// For one of the warps. An element of D stays undefined, unless scale-d is false; an undefined element of A in
// registers makes its row of D undefined.
void passes_wgmma(Warp &, const Op &, const DataFlow &, uint32_t lanes);

struct WgmmaSums {
    // A: [64 rows][depth]. B: [columns / kSumColumns][depth][kSumColumns], each 8 columns even ones first; there are at
    // most 256, and those that D does not have are 0. Both aligned to 64 bytes, with their exponents.
    const float *a = nullptr, *b = nullptr;
    const int16_t *a_exponents = nullptr, *b_exponents = nullptr;
    unsigned depth = 0, columns = 0;  // depth: 8 or 16; of 8-bit floats 32
    // D of 32-bit floats, in place: the registers of the four warps, and where in them each of the slots lies, four for
    // each 8 columns.
    std::byte *registers[4] = {};
    const uint32_t *slots = nullptr;
    unsigned d_columns = 0;  // a multiple of 8
    bool adds = true;        // false: the D that was there does not count
};
// False: there are infinities or NaN among the factors, and nothing has been written.
bool wgmma_sums(const WgmmaSums &);

}  // namespace warpsim
