// The rows of the table of instructions, by family: each of these is in the file that has the family's lowering.
#pragma once

#include <span>

#include "lower/instruction_table.h"

namespace warpsim {

std::span<const InstructionRow> control_rows();
std::span<const InstructionRow> stack_rows();
std::span<const InstructionRow> warp_rows();
std::span<const InstructionRow> barrier_rows();
std::span<const InstructionRow> memory_rows();
std::span<const InstructionRow> atomics_rows();
std::span<const InstructionRow> texture_rows();
std::span<const InstructionRow> mma_rows();
std::span<const InstructionRow> wmma_rows();
std::span<const InstructionRow> matrix_moves_rows();
std::span<const InstructionRow> move_rows();
std::span<const InstructionRow> convert_rows();
std::span<const InstructionRow> compare_rows();
std::span<const InstructionRow> logic_rows();
std::span<const InstructionRow> arithmetic_rows();
std::span<const InstructionRow> video_rows();
std::span<const InstructionRow> async_copy_rows();
std::span<const InstructionRow> mbarrier_rows();
std::span<const InstructionRow> bulk_copy_rows();
std::span<const InstructionRow> cluster_rows();
std::span<const InstructionRow> tensor_map_rows();
std::span<const InstructionRow> wgmma_rows();

// What rows of several families say.
#define SCOPE "{.cta,.cluster,.gpu,.sys}"
#define SHARED ".shared,.shared::cta,.shared::cluster"
#define PREFETCH_SIZE "{.L2::64B,.L2::128B,.L2::256B}"
#define VECTOR "{.v2,.v4,.v8}"
#define ROUND ".rn,.rz,.rm,.rp"

}  // namespace warpsim
