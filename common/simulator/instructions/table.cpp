// All instructions: the rows that the families bring, and what warpsim leaves out.
#include <iterator>

#include "instructions/rows.h"

namespace warpsim {
namespace {

// Instructions that are PTX and that warpsim leaves out as a whole.
constexpr std::string_view kNotSimulated[] = {
    "clusterlaunchcontrol",
    "istypep",
    "multimem",
    "tcgen05",
    // Scalar video instructions: ptxas replaces them on today's GPUs, with other results than the manual's (.sat, .h1).
    "vabsdiff",
    "vadd",
    "vmad",
    "vmax",
    "vmin",
    "vset",
    "vshl",
    "vshr",
    "vsub",
};

}  // namespace

std::vector<std::span<const InstructionRow>> instruction_rows() {
    return {control_rows(),    stack_rows(),      warp_rows(),     barrier_rows(),   memory_rows(),
            atomics_rows(),    texture_rows(),    mma_rows(),      wmma_rows(),      matrix_moves_rows(),
            move_rows(),       convert_rows(),    compare_rows(),  logic_rows(),     arithmetic_rows(),
            video_rows(),      async_copy_rows(), mbarrier_rows(), bulk_copy_rows(), cluster_rows(),
            tensor_map_rows(), wgmma_rows()};
}

std::span<const std::string_view> instructions_not_simulated() {
    return kNotSimulated;
}

}  // namespace warpsim
