// Which registers a PTX instruction reads and writes.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"

namespace warpsim {

struct RegisterUse {
    uint32_t reg;  // index into Function::registers
    bool written;  // else read
    bool whole;    // written in all lanes that execute and all components: the old value is gone
};

// Appends every register of the instruction, guard and address bases included. A register that is both read and
// written appears twice; one that is written in part or under a guard counts as read too. All reads come before all
// writes.
void register_uses(const ptx::Instruction &, std::vector<RegisterUse> &out);

}  // namespace warpsim
