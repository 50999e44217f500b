// cp.async.bulk.tensor: copies of boxes of tensors (TMA), which one thread asks for and the asynchronous proxy carries
// out. They wait, arrive and are waited for as bulk copies are: exec/bulk_copy.h.
#pragma once

#include "core/warp.h"

namespace warpsim {

void exec_tensor_load(Warp &, const Op &);    // global to shared memory; completes to an mbarrier
void exec_tensor_store(Warp &, const Op &);   // shared to global memory; completes to a bulk group
void exec_tensor_reduce(Warp &, const Op &);  // the same, combined with what is there
void exec_tensor_prefetch(Warp &, const Op &);

}  // namespace warpsim
