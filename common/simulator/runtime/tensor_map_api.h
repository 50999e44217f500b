// Functions of the driver that make tensor maps. Programs find them by cudaGetDriverEntryPoint.
#pragma once

namespace warpsim::rt {

// The function of the driver that has this name; null: the simulator has none. since: the CUDA version it came with.
void *driver_function(const char *name, unsigned &since);

}  // namespace warpsim::rt
