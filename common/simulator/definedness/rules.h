// How undefined bits pass through instructions: the rules that rows of the table name (instructions/). A row that names
// none gets passes_any, which is right for every instruction, if not always exact.
#pragma once

#include <array>

#include "core/dataflow.h"
#include "core/program.h"
#include "core/warp.h"
#include "definedness/definedness.h"
#include "definedness/registers.h"

namespace warpsim {

// What an op reads and writes, as stretches of Program::operands.
struct Operands {
    const OperandSlot *reads, *writes;
    Operands(const Warp &w, const DataFlow &flow)
        : reads(w.block->program->operands.data() + flow.first), writes(reads + flow.reads) {}
};

// Lanes of the warp in which something that the op reads is undefined.
uint32_t undefined_reads(const Warp &, const DataFlow &);

// Where the undefined bits that each lane reads came from. A register that nothing wrote is read here: `named` says so,
// and what comes of the values is no sum of unknowns any more. Otherwise the origins are as the registers have them.
using LaneOrigins = std::array<uint32_t, kLanes>;
LaneOrigins read_origins(Warp &, const Op &, const DataFlow &, uint32_t lanes, bool named = true);
void set_origins(RegisterShadow &, const OperandSlot &, uint32_t lanes, const LaneOrigins &);

// Reports that an undefined operand matters, for the first of the lanes.
void operand_matters(Warp &, const Op &, OperandSlot, uint32_t lanes, Use);

// All bits of what a lane writes, where any bit of what it reads is undefined; in warp-synchronous instructions where
// any lane's is. Halves of packed 16-bit floats for themselves. Of an instruction that writes no register it is
// reported.
void passes_any(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// Bits are moved and nothing else.
void passes_copies(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// Integers: from the lowest undefined bit of the sources upwards; unknowns add up (definedness/linear.h).
void passes_sum(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_difference(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_negation(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// A comparison with a Boolean operand: defined where the operand alone decides.
void passes_comparison(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// Conversions: integers bit by bit, others any.
void passes_conversion(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// lop3 by its truth table; a predicate that it writes: any.
void passes_lop3(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_nothing(Warp &, const Op &, const DataFlow &, uint32_t lanes);

// Bit by bit, as the truth table of lop3 has it for the operands a, b.
void passes_table(Warp &, const Op &, const DataFlow &, uint32_t lanes, unsigned table);
template <unsigned table>
void passes_logic(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    passes_table(w, op, flow, lanes, table);
}
inline constexpr unsigned kTableA = 0xf0, kTableB = 0xcc, kTableNotA = 0x0f;

// Operands that the op only moves bits of, by the values of the others (shifts, fields, selections). The op itself is
// run with the undefined bits in their place. A lane with another undefined operand is undefined.
enum MovedOperands : unsigned { kMovesA = 1, kMovesB = 2, kMovesAB = 3 };
void passes_moved(Warp &, const Op &, const DataFlow &, uint32_t lanes, unsigned moved);
template <unsigned moved>
void passes_bits(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    passes_moved(w, op, flow, lanes, moved);
}

}  // namespace warpsim
