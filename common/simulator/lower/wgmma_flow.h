// Which instructions may touch registers of a wgmma that is in flight, and which wgmma may miss a wgmma.fence: found by
// following a function's paths. Execution then looks whether it is so on the path that it takes.
//
// In flight are D and, where it is in registers, A, from the wgmma until a wait that covers it. A mov of such a
// register passes that on and is no use of its value. Behind other accesses of D or A a wgmma.fence must come before
// the next wgmma; a mov is none, since ptxas places moves itself: nvcc puts zero initialisations below the fence.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lower/layout.h"
#include "ptx/ast.h"

namespace warpsim {

class WgmmaFlow {
  public:
    struct Finding {
        uint32_t wgmma;  // instruction; of a missing fence: the one before it that accesses the register, kStart: none
        uint32_t reg;
        bool unfenced, written, is_a;
    };
    static constexpr uint32_t kStart = 0xffffffffu;

    void run(const ptx::Function &, const Layout &);
    // Of an instruction of the body; null: nothing.
    const Finding *find(uint32_t instruction) const;

  private:
    std::unordered_map<uint32_t, Finding> findings_;
};

}  // namespace warpsim
