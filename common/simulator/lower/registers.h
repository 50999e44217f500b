// Which registers a PTX instruction reads and writes; and places for them in a frame, so that registers which are never
// live at once share one.
#pragma once

#include <cstdint>
#include <vector>

#include "lower/layout.h"
#include "ptx/ast.h"

namespace warpsim {

// Bytes of a slot for lanes of `type_bytes` (0: a predicate).
uint32_t slot_bytes(unsigned type_bytes);

struct Allocation {
    std::vector<uint32_t> slot;        // by register: byte offset in the frame, kNoSlot if the register is never used
    uint32_t bytes = 0;                // of all slots together, a multiple of 64
    uint32_t most_live_words = 0;      // 32-bit registers live at once at most
    bool reads_before_writes = false;  // some register may be read before anything was written to it
    std::vector<uint32_t> unwritten;   // which ones; empty where a function is too large to tell
};

// A destination never shares a place with a source of the same instruction, nor with another destination of it.
Allocation allocate_registers(const ptx::Function &, const Layout &);

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
