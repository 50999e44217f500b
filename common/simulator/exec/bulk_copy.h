// cp.async.bulk: copies of many bytes that one thread asks for and the asynchronous proxy carries out.
#pragma once

#include <vector>

#include "core/op_formats.h"
#include "core/warp.h"
#include "exec/memory.h"

namespace warpsim {

struct BulkStore;
struct StorePart;

void exec_bulk_load(Warp &, const Op &);    // global to shared memory; completes to an mbarrier
void exec_bulk_store(Warp &, const Op &);   // shared to global memory; completes to a bulk group
void exec_bulk_reduce(Warp &, const Op &);  // the same, combined with what is there
void exec_bulk_prefetch(Warp &, const Op &);
void exec_bulk_commit(Warp &, const Op &);
void exec_bulk_wait(Warp &, const Op &);  // until at most Op::imm groups are in flight; Op::b: their sources only
void exec_proxy_fence(Warp &, const Op &);
void exec_mbarrier_fence(Warp &, const Op &);  // fence.mbarrier_init

// ---- what bulk copies and copies of boxes share ----

// A base in `slot` (kNoSlot: none), as lane_addresses() and mbarrier_addresses() take it.
Op with_address(const Op &, uint32_t slot, int64_t offset, bool base32);
// `bytes` (a multiple of 16) of the block's shared memory from `address` on; false: they are not there, which has been
// reported.
bool in_shared(Warp &, const Op &, Intent, unsigned lane, uint64_t address, uint32_t bytes);
// A copy of `data` into shared memory, which completes to the mbarrier that `at_mbarrier` names. Until somebody waits
// for that there is poison.
void issue_bulk_load(Warp &, const Op &, const Op &at_mbarrier, unsigned lane, uint32_t to,
                     std::vector<std::byte> data);
// A copy of `bytes` from shared memory on to device address `to`, or of parts of them; completes to the lane's open
// bulk group. The reference holds until the next one.
BulkStore &issue_bulk_store(Warp &, const Op &, unsigned lane, uint32_t from, uint32_t bytes, uint64_t to,
                            std::byte *host, std::vector<StorePart> parts = {});
// to[i] = operation(to[i], from[i]) for elements of the type.
void combine(BulkOperation, ptx::Type, std::byte *to, const std::byte *from, uint32_t bytes);

// Parts of a store: its source is read, its destination is written.
void read_source(BulkStore &);
void write_destination(BulkStore &);

}  // namespace warpsim
