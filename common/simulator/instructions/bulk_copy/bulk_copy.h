// cp.async.bulk: copies of many bytes that one thread asks for and the asynchronous proxy carries out; cp.async.bulk
// between the blocks of a cluster; and cp.async.bulk.tensor, copies of boxes of tensors (TMA), which wait, arrive and
// are waited for as bulk copies are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/op_formats.h"
#include "core/tensor_map.h"
#include "core/warp.h"
#include "machine/addresses.h"
#include "ptx/ast.h"

namespace warpsim {

struct BulkStore;
struct StorePart;

void exec_bulk_load(Warp &, const Op &);    // global to shared memory; completes to an mbarrier
void exec_bulk_store(Warp &, const Op &);   // shared to global memory; completes to a bulk group
void exec_bulk_reduce(Warp &, const Op &);  // the same, combined with what is there
void exec_bulk_prefetch(Warp &, const Op &);
void exec_bulk_commit(Warp &, const Op &);
void exec_bulk_wait(Warp &, const Op &);  // until at most Op::imm groups are in flight; Op::b: their sources only

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

void exec_tensor_load(Warp &, const Op &);    // global to shared memory; completes to an mbarrier
void exec_tensor_store(Warp &, const Op &);   // shared to global memory; completes to a bulk group
void exec_tensor_reduce(Warp &, const Op &);  // the same, combined with what is there
void exec_tensor_prefetch(Warp &, const Op &);

// A stretch of the box along dimension 0 that lies inside the tensor.
struct BoxRow {
    uint32_t at = 0;  // bytes into the packed box, before the swizzle
    uint32_t bytes = 0;
    uint64_t global = 0;  // device address
    std::byte *host = nullptr;
};

struct TensorBox {
    uint32_t bytes = 0;            // all of it, what lies outside of the tensor too
    std::vector<BoxRow> rows;      // those (parts) that lie inside
    uint64_t first = 0, last = 0;  // lowest and highest device address of rows, both inclusive
    uint64_t sectors = 0;          // of 32 bytes that the rows touch, each row by itself
};

using Coordinates = std::array<int32_t, kMostDimensions>;

// A map without fault (tensor_map_fault).
TensorBox make_box(const TensorMap &, const Coordinates &);

// The bytes of shared memory that a load of the box writes at `address`, a multiple of kBoxAlignment: rows and what
// fills the rest, swizzled. Rows have their host addresses.
std::vector<std::byte> load_box(const TensorMap &, const TensorBox &, uint32_t address);

// A piece of a row that is contiguous in shared memory, too: bytes [at, at + bytes) of the box as it lies there.
struct BoxPiece {
    uint32_t at = 0, bytes = 0;
    uint64_t global = 0;
    std::byte *host = nullptr;
};
std::vector<BoxPiece> pieces_of(const TensorMap &, const TensorBox &, uint32_t address);

// Is the map at this global address one that the block has changed since its last acquire? Reported; false then.
bool check_map_changes(Warp &, const Op &, unsigned lane, uint64_t address);

// ---- for lowerings ----

BulkOperation bulk_operation(const ptx::Instruction &);  // .add, .min, ...; none
bool reduces_shared(BulkOperation, ptx::Type);           // there is such a reduction to shared memory

}  // namespace warpsim
