// What the lowerings of mma, ldmatrix and wmma share.
#pragma once

#include <string>
#include <vector>

#include "lower/lowering.h"

namespace warpsim {

// {a, b, c, d}, or a register alone.
inline std::vector<ptx::Operand> registers_of(const ptx::Operand &operand) {
    return operand.kind == ptx::Operand::Kind::vector ? operand.elements : std::vector<ptx::Operand>{operand};
}

inline void expect_count(Lowering &l, const ptx::Instruction &in, const char *what, size_t have, size_t want) {
    if (have != want)
        l.unsupported(in,
                      std::string(what) + " has " + std::to_string(have) + " registers, not " + std::to_string(want));
}

}  // namespace warpsim
