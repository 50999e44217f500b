// cvt: vectorised handlers for the common pairs of types, and one general handler for all others, which takes every
// number format apart and puts it together exactly. And the moves of registers that other families use.
#pragma once

#include <cstdint>

#include "core/op_formats.h"
#include "core/types.h"
#include "instructions/arithmetic/forms.h"

namespace warpsim {

// dst = a converted, in the widths that the Conversion in imm gives; results are extended to to_bytes by their sign.
void convert_scalar(Warp &, const Op &);
// Two elements packed in dst, from two registers or from one packed register.
void convert_pair(Warp &, const Op &);
// cvt.pack: a and b saturated to the bits of `extra`'s PackForm, packed in the low bits; above them c's low bits
// (kNoSlot: none).
void convert_pack(Warp &, const Op &);

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

Handler move_handler(
    unsigned bytes);  // instructions/convert/move.cpp: a register of 2, 4, 8 or 16 bytes; 0: a predicate

}  // namespace warpsim
