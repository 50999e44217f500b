// Ways through a kernel's ops, for messages about what stands between two of them.
#pragma once

#include <cstdint>

namespace warpsim {

struct Program;

// Does some way lead from behind op `from` to op `to` on which a thread waits for no other thread: at no barrier of the
// block or the cluster, for no mbarrier, and (warps) at no barrier of its warp? Guarded barriers do not count. Follows
// calls and returns, not calls through pointers. Costs time that grows with the program.
bool leads_freely(const Program &, uint32_t from, uint32_t to, bool warps);

}  // namespace warpsim
