// Basic blocks of a function and the order in which their ops are laid out.
//
// The warp loop runs the lanes with the lowest op index first. That reconverges lanes where their paths meet exactly if
// the order is a weak topological one: a block stands after all blocks that lead to it (loops aside), a loop is one
// contiguous piece, and what follows a loop stands after it, wherever the compiler laid these blocks out.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"

namespace warpsim {

inline constexpr uint32_t kNoBlock = 0xffffffffu;

struct BasicBlock {
    uint32_t first = 0, last = 0;      // instructions [first, last) of the function's body
    std::vector<uint32_t> successors;  // taken branches first, the block that control falls into last
    uint32_t fall_through = kNoBlock;  // that block; kNoBlock where control never falls out of the end
    // A latch is an empty block at the end of a loop that several back edges lead through, so that lanes which finish
    // an iteration early wait there for the others. It jumps to this loop head.
    uint32_t latch_to = kNoBlock;
};

struct Layout {
    std::vector<BasicBlock> blocks;        // [0] is the entry
    std::vector<uint32_t> order;           // block numbers; unreachable blocks are left out
    std::vector<uint32_t> block_at_label;  // by label index: the block that starts there
    // Where a jump from one block to another really goes: to the loop's latch instead of its head.
    uint32_t destination(uint32_t from, uint32_t to) const;
    std::vector<uint32_t> position;  // by block: place in `order`, kNoBlock if unreachable

  private:
    friend Layout lay_out(const ptx::Function &);
    std::vector<uint32_t> latch_of_head_;  // by block: its latch, or kNoBlock
};

// The instruction ends a basic block: bra, brx, ret, exit, trap. Calls do not.
bool is_terminator(const ptx::Instruction &);

// Throws Unsupported for a function with absurdly many branch targets.
Layout lay_out(const ptx::Function &);

}  // namespace warpsim
