// setp and set: comparisons of all types.
#pragma once

#include "exec/alu.h"

namespace warpsim {

// The forms are "setp.lt.f32" (one predicate, no Boolean operand) and "compare.lt.f32", which reads this from
// Op::extra: what becomes of the comparison's result.
struct CompareOutput {
    enum class Combine : uint8_t { none, land, lor, lxor } combine = Combine::none;  // with predicate slot c
    bool negate_c = false;
    // predicates: dst = p, imm = slot of q (-1: none). ones: all bits set. Else the number 1 of the type.
    enum class Kind : uint8_t { predicates, ones, f32, f16, bf16 } kind = Kind::predicates;
    uint8_t bytes = 4;  // of a lane of dst, where that is no predicate
};
uint32_t pack_compare_output(const CompareOutput &);

}  // namespace warpsim
