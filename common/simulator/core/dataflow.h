// Which registers an op reads and writes, and how undefined bits pass from the ones to the others. Kept beside the ops,
// not in them: only warps that hold an undefined value look here (definedness/).
#pragma once

#include <cstdint>
#include <vector>

#include "core/op.h"

namespace warpsim {

struct OperandSlot {
    uint32_t slot = kNoSlot;
    uint32_t bytes = 0;  // of a lane; 0: a predicate, 16: low words of all lanes, then high words
};

struct DataFlow;

// Gives the written registers of lanes in warp.exec their undefined bits, before the op runs. `lanes` (never 0): those
// of warp.exec in which something that the op reads has undefined bits. Reports what an undefined value must not
// decide.
using DefinednessRule = void (*)(Warp &, const Op &, const DataFlow &, uint32_t lanes);

struct DataFlow {
    DefinednessRule rule = nullptr;
    uint32_t first = 0;              // in Program::operands: reads, then writes
    uint16_t reads = 0, writes = 0;  // the guard is not counted
    bool takes_carry = false, gives_carry = false;
};

}  // namespace warpsim
