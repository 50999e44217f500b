// What is said of threads that wait for ever: once for each cause, with the warps that it holds.
#pragma once

#include <string>

#include "exec/standstill.h"

namespace warpsim {

// Nothing in the block, or in its cluster, can go on. (report_deadlock of exec/context.h: all of its threads wait.)
[[noreturn]] void report_standstill(BlockContext &, const Standstill &);

// Nothing in any of the blocks can go on; those from `admitted` on, of `teams` in all, have not started.
[[noreturn]] void report_standstill(std::vector<BlockContext *>, const Standstill &, uint64_t admitted,
                                    uint64_t resident);

// exec/barrier.cpp: "barrier 1, where 32 of 64 threads have arrived"
std::string barrier_wait_text(const BlockContext &, const Fragment &);

// exec/hazards.cpp: reports it and ends the launch, whatever WARPSIM_HAZARDS says.
[[noreturn]] void report_and_end(WarpContext &, const Op &, HazardKind, int lane, uint64_t address,
                                 const std::string &message);

}  // namespace warpsim
