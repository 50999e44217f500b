// cvt: vectorised handlers for the common pairs of types, and one general handler for all others.
#pragma once

#include "exec/alu.h"
#include "exec/convert_format.h"

namespace warpsim {

// dst = a converted, in the widths that the Conversion in imm gives; results are extended to to_bytes by their sign.
void convert_scalar(Warp &, const Op &);
// Two elements packed in dst, from two registers or from one packed register.
void convert_pair(Warp &, const Op &);
// cvt.pack: a and b saturated to the bits of `extra`'s PackForm, packed in the low bits; above them c's low bits
// (kNoSlot: none).
void convert_pack(Warp &, const Op &);

// By the instruction's text, plus "/a4" or "/d4" where an 8-bit source or result sits in a 32-bit register (without:
// a 16-bit one).
void add_convert_forms(AluForms &);

}  // namespace warpsim
