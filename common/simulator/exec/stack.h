// The stack that alloca takes memory from: in a thread's local memory, behind the variables of the function's frame.
#pragma once

#include <cstdint>

#include "core/program.h"
#include "core/specials.h"
#include "core/warp.h"

namespace warpsim {

struct Frame;

// A function with alloca has the special register frame_base in 64 bits, too, and there it moves: up by what alloca has
// taken, in each lane by itself, and back by stackrestore. All other functions have it in 32 bits alone.
inline constexpr unsigned kStackTopBytes = 8;
inline bool is_stack_top(const Program::Function::Special &special) {
    return Special(special.which) == Special::frame_base && special.bytes == kStackTopBytes;
}

// A frame's own variables; one that calls takes 16 bytes at least.
uint64_t variable_bytes(const Frame &);
// Where the frame of a function begins that these lanes call from this one.
uint64_t stack_end(const Frame &, uint32_t lanes);

// alloca.type: dst address in local memory, a size, b the moving frame_base, imm alignment. T: uint32_t or uint64_t.
template <class T>
void exec_alloca(Warp &, const Op &);
// stacksave.type: dst the address behind all that alloca has taken, b the moving frame_base.
template <class T>
void exec_stack_save(Warp &, const Op &);
// stackrestore.type: a what stacksave gave, b the moving frame_base.
template <class T>
void exec_stack_restore(Warp &, const Op &);

}  // namespace warpsim
