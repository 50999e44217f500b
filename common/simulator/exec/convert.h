// cvt: vectorised handlers for the common pairs of types, and one general handler for all others.
#pragma once

#include "exec/alu.h"
#include "exec/convert_format.h"

namespace warpsim {

// A conversion as the general handler reads it from Op::imm.
struct Conversion {
    ptx::Type to = ptx::Type::none, from = ptx::Type::none;  // of one element, never a packed type
    uint8_t to_bytes = 0, from_bytes = 0;                    // lane widths of the registers (or of a packed element)
    Round round = Round::nearest_even;
    bool integral : 1 = false;  // .rni .rzi .rmi .rpi: round to an integer first
    bool ftz : 1 = false;
    bool sat : 1 = false;
    bool satfinite : 1 = false;
    bool relu : 1 = false;
    bool two_sources : 1 = false;  // a packed result from a (upper half) and b (lower half)
};
static_assert(sizeof(Conversion) <= sizeof(int64_t), "travels in Op::imm");

int64_t pack_conversion(const Conversion &);

// dst = a converted, in the widths that the Conversion in imm gives; results are extended to to_bytes by their sign.
void convert_scalar(Warp &, const Op &);
// Two elements packed in dst, from two registers or from one packed register.
void convert_pair(Warp &, const Op &);
// cvt.pack: a and b saturated to `extra`'s type, packed in the low bits; above them c's low bits (kNoSlot: none).
void convert_pack(Warp &, const Op &);

// By the instruction's text, plus "/a4" or "/d4" where an 8-bit source or result sits in a 32-bit register (without:
// a 16-bit one).
void add_convert_forms(AluForms &);

}  // namespace warpsim
