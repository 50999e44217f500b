// Every number format of cvt, taken apart and put together exactly: the general path for all conversions that have no
// vectorised handler of their own.
#pragma once

#include <cstdint>

#include "core/op_formats.h"
#include "core/types.h"

namespace warpsim {

// (-1)^negative * significand * 2^exponent; below the last bit may lie more (sticky).
struct Number {
    enum class Kind : uint8_t { zero, finite, infinite, nan } kind = Kind::zero;
    bool negative = false;
    bool sticky = false;
    uint64_t significand = 0;
    int exponent = 0;
};

// A binary floating-point format. Bits are those of the value right-aligned, except tf32's, which sit at the top of 32.
struct FloatFormat {
    unsigned precision;  // bits of the significand, the hidden one included
    int max_exponent;    // of the largest finite value: 2^max_exponent * 1.x
    unsigned exponent_bits;
    unsigned trailing_zeros;  // tf32: 13
    uint64_t nan;             // canonical
    bool has_infinity;        // e4m3 has none: its top exponent holds numbers, and all ones is NaN
    int min_exponent() const { return 2 - (1 << (exponent_bits - 1)); }
};
// null for types that are no scalar float.
const FloatFormat *float_format(ptx::Type);

Number unpack_float(uint64_t bits, const FloatFormat &);
Number unpack_integer(uint64_t bits, ptx::Type);

// Rounds to the format. Overflow gives infinity, or the largest finite value where the rounding mode or
// `saturate_finite` says so (infinities too, then); a format without infinities then gives NaN.
uint64_t pack_float(const Number &, const FloatFormat &, Round, bool saturate_finite);

// Rounds to an integral value.
Number round_to_integral(const Number &, Round);

// Rounds and clamps to the range of `to`. NaN gives `nan`.
uint64_t pack_integer(const Number &, ptx::Type to, Round, uint64_t nan);

}  // namespace warpsim
