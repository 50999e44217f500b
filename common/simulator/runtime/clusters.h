// Clusters of a launch: which size it has, what is refused, and how many of them a device holds.
#pragma once

#include <optional>
#include <string>

#include "lower/module.h"
#include "runtime/cuda_api.h"
#include "runtime/modules.h"
#include "runtime/profile.h"

namespace warpsim::rt {

// "(4, 2, 1)"
std::string dimensions(const dim3 &);

// The size that the kernel was compiled for or cudaFuncSetAttribute gave it; {0, 0, 0}: none.
dim3 required_cluster(const Kernel &, const Program &);
bool requires_cluster(const Kernel &, const Program &);

// The size of a launch's clusters: asked (asked.x 0: nothing), the kernel's own, or 1x1x1. None: `why` says what is
// wrong.
std::optional<dim3> cluster_of_launch(const Profile &, const Kernel &, const Program &, const dim3 &grid,
                                      const dim3 &asked, std::string &why);

// Clusters of `size` blocks on the device at once, where each multiprocessor holds `resident` blocks. A cluster lies in
// one GPC.
unsigned clusters_on_device(const Profile &, unsigned size, unsigned resident);

}  // namespace warpsim::rt
