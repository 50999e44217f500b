// Handlers of mov, packing and unpacking, prmt with an immediate selector, and address-space conversion.
#pragma once

#include "exec/alu.h"

namespace warpsim {

Handler move_handler(unsigned bytes);  // one register of 2, 4, 8 or 16 bytes; 0: a predicate
// dst = {list[0] (lowest), ...}: list_count elements of element_bytes; null where there is no such form.
Handler pack_handler(unsigned element_bytes, unsigned count);
// {list[0], ...} = a; kNoSlot elements are dropped.
Handler unpack_handler(unsigned element_bytes, unsigned count);

// prmt in its default mode with the same selector (imm, no sign bits: bit 3 of each digit is 0) in all lanes.
void permute_immediate(Warp &, const Op &);

void add_offset64(Warp &, const Op &);        // dst = a + imm, 64-bit lanes: cvta of the windows
void in_constant_memory(Warp &, const Op &);  // isspacep.const
void in_window(Warp &, const Op &);           // isspacep: predicate dst = a's top byte equals imm's
void set_predicate(Warp &, const Op &);       // predicate dst = imm's low 32 bits
void invert_predicate(Warp &, const Op &);    // predicate dst = !a

}  // namespace warpsim
