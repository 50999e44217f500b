// cp.async.bulk: copies of many bytes that one thread asks for and the asynchronous proxy carries out.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

struct BulkStore;

void exec_bulk_load(Warp &, const Op &);    // global to shared memory; completes to an mbarrier
void exec_bulk_store(Warp &, const Op &);   // shared to global memory; completes to a bulk group
void exec_bulk_reduce(Warp &, const Op &);  // the same, combined with what is there
void exec_bulk_prefetch(Warp &, const Op &);
void exec_bulk_commit(Warp &, const Op &);
void exec_bulk_wait(Warp &, const Op &);  // until at most Op::imm groups are in flight; Op::b: their sources only
void exec_proxy_fence(Warp &, const Op &);
void exec_mbarrier_fence(Warp &, const Op &);  // fence.mbarrier_init

// Parts of a store: its source is read, its destination is written.
void read_source(BulkStore &);
void write_destination(BulkStore &);

}  // namespace warpsim
