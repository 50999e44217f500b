// Rows of the table of instructions: those that a warpgroup executes together.
#include "exec/tracking_wgmma.h"
#include "exec/warpgroup.h"
#include "lower/families.h"
#include "lower/instructions.h"

namespace warpsim {
namespace {

// A warp's own: all of its lanes execute it.
#define OF_WARP OpClass::warpgroup, Flow::warp_sync

constexpr InstructionRow kRows[] = {
    {"wgmma.mma_async!.sync.aligned*", "d, a, b, c{, e}{, f}{, g}{, h}", OpClass::tensor, Flow::warpgroup, exec_wgmma,
     lower_wgmma, passes_wgmma},
    {"wgmma.fence!.sync.aligned", "", OF_WARP, exec_wgmma_fence, lower_plain, passes_nothing},
    {"wgmma.commit_group!.sync.aligned", "", OF_WARP, exec_wgmma_commit, lower_plain, passes_nothing},
    {"wgmma.wait_group!.sync.aligned", "i", OF_WARP, exec_wgmma_wait, lower_wgmma_wait, passes_nothing},
    {"setmaxnreg.{inc,dec}!.sync.aligned.u32", "i", OpClass::warpgroup, Flow::warpgroup, exec_set_max_registers,
     lower_set_max_registers, passes_nothing},
};

}  // namespace

std::span<const InstructionRow> wgmma_rows() {
    return kRows;
}

}  // namespace warpsim
