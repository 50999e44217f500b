// Sums of products of a whole wgmma of floats to fp32, bit for bit as exec/tensor_sum.h says, where D's registers lie:
// no element of D is kept elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpsim {

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
