// cp.async.bulk(.tensor) between the blocks of a cluster.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

// Global memory to a shared memory that may be a peer's: Program::remote_ops[Op::target] has slots for the addresses in
// that block.
void exec_bulk_load_remote(Warp &, const Op &);
void exec_tensor_load_remote(Warp &, const Op &);
// The same offset in each block of a mask, whose slot stands behind the list; so does the mbarrier that each completes
// to.
void exec_bulk_multicast(Warp &, const Op &);
void exec_tensor_multicast(Warp &, const Op &);
// The block's own shared memory, where the list has its address in place of the global one, to that of the cluster;
// BulkForm::operation none: a copy, else a reduction.
void exec_bulk_to_peer(Warp &, const Op &);

}  // namespace warpsim
