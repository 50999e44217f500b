// What is said of conflicts in global memory.
#pragma once

#include <cstdint>
#include <string>

#include "core/hazard_kind.h"
#include "core/warp.h"

namespace warpsim {

// One side of a conflict: an op's access by a lane of a warp of the team.
struct GlobalPlace {
    uint32_t op = 0;
    unsigned flags = 0;  // kGlobalWrites, ...
    unsigned agent = 0, lane = 0;
};

std::string access_verb(const Program &, const GlobalPlace &);  // "write"
std::string access_did(const Program &, const GlobalPlace &);   // "wrote"

// "byte 64 of the 4,096 bytes allocated at 0x..."
std::string allocation_text(const GlobalMemory &, uint64_t address);

// Of threads of one block or cluster: what they did where, and what orders such accesses.
std::string text_in_block(const Block &, const GlobalPlace &now, const GlobalPlace &then, unsigned warps_of_block,
                          uint64_t address, HazardKind = HazardKind::global_race);

// Of threads of two blocks: block names as "(x,y,z)".
struct TwoBlocks {
    GlobalPlace now, then;
    std::string now_block, then_block;
    unsigned warps_of_block = 1;
    bool both_read_and_write = false;  // each side reads and writes the place: an update that is none of one piece
    bool same_value = false;           // both store the same
    bool noncoherent = false;          // a read through the non-coherent cache: that they are ordered does not help
    bool communicates = false;         // the kernel has flags or atomics by which its blocks could be ordered
    bool released = false;             // the write is, at some flag or counter
};
std::string text_between_blocks(const Program &, const GlobalMemory &, const TwoBlocks &, uint64_t address);

}  // namespace warpsim
