// Gives PTX registers places in a frame, so that registers which are never live at once share one.
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

}  // namespace warpsim
