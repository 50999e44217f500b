// The lowering functions that the table of instructions names, by the file that has them.
#pragma once

#include "core/op_formats.h"
#include "lower/lowering.h"

namespace warpsim {

#define WARPSIM_LOWERING(name) void name(Lowering &, const ptx::Instruction &)

// alu.cpp
WARPSIM_LOWERING(lower_by_text);
// async_copy.cpp
WARPSIM_LOWERING(lower_cp_async);
WARPSIM_LOWERING(lower_wait_group);
// atomics.cpp
WARPSIM_LOWERING(lower_atom);
WARPSIM_LOWERING(lower_red);
// cluster.cpp
WARPSIM_LOWERING(lower_mapa);
WARPSIM_LOWERING(lower_getctarank);
WARPSIM_LOWERING(lower_cluster_barrier);
WARPSIM_LOWERING(lower_fence);
WARPSIM_LOWERING(lower_async_store);
WARPSIM_LOWERING(lower_bulk_to_peer);
// control.cpp
WARPSIM_LOWERING(lower_plain);  // the row's handler, class and flow; operands are not looked at
WARPSIM_LOWERING(lower_bra);
WARPSIM_LOWERING(lower_brx);
WARPSIM_LOWERING(lower_call);
WARPSIM_LOWERING(lower_warp_barrier);
WARPSIM_LOWERING(lower_barrier);
WARPSIM_LOWERING(lower_griddepcontrol);
WARPSIM_LOWERING(lower_nanosleep);
// convert.cpp
WARPSIM_LOWERING(lower_cvt);
WARPSIM_LOWERING(lower_cvt_pack);
WARPSIM_LOWERING(lower_mov);
WARPSIM_LOWERING(lower_prmt);
WARPSIM_LOWERING(lower_setp);
WARPSIM_LOWERING(lower_set);
WARPSIM_LOWERING(lower_cvta);
WARPSIM_LOWERING(lower_isspacep);
// integer.cpp
WARPSIM_LOWERING(lower_lop3);
WARPSIM_LOWERING(lower_lop3_predicate);
// mbarrier.cpp
WARPSIM_LOWERING(lower_mbarrier);
WARPSIM_LOWERING(lower_mbarrier_copies);
WARPSIM_LOWERING(lower_mbarrier_pending_count);
WARPSIM_LOWERING(lower_bulk_copy);
WARPSIM_LOWERING(lower_bulk_wait);
BulkOperation bulk_operation(const ptx::Instruction &);  // .add, .min, ...
// memory.cpp
WARPSIM_LOWERING(lower_load);
WARPSIM_LOWERING(lower_store);
WARPSIM_LOWERING(lower_address_check);
WARPSIM_LOWERING(lower_createpolicy);
// stack.cpp
WARPSIM_LOWERING(lower_alloca);
WARPSIM_LOWERING(lower_stack_save);
WARPSIM_LOWERING(lower_stack_restore);
// tensor.cpp
WARPSIM_LOWERING(lower_mma);
WARPSIM_LOWERING(lower_ldmatrix);
WARPSIM_LOWERING(lower_stmatrix);
WARPSIM_LOWERING(lower_movmatrix);
// tensor_copy.cpp
WARPSIM_LOWERING(lower_tensor_copy);
WARPSIM_LOWERING(lower_tensor_refused);
// tensor_map_ops.cpp
WARPSIM_LOWERING(lower_map_replace);
WARPSIM_LOWERING(lower_map_copy);
WARPSIM_LOWERING(lower_map_acquire);
// texture.cpp
WARPSIM_LOWERING(lower_texture);
WARPSIM_LOWERING(lower_image_query);
WARPSIM_LOWERING(lower_surface_load);
WARPSIM_LOWERING(lower_surface_store);
// video.cpp
WARPSIM_LOWERING(lower_video);
// warp.cpp
WARPSIM_LOWERING(lower_shfl);
WARPSIM_LOWERING(lower_vote);
WARPSIM_LOWERING(lower_match);
WARPSIM_LOWERING(lower_redux);
WARPSIM_LOWERING(lower_activemask);
WARPSIM_LOWERING(lower_elect);
// wgmma.cpp
WARPSIM_LOWERING(lower_wgmma);
WARPSIM_LOWERING(lower_wgmma_wait);
WARPSIM_LOWERING(lower_set_max_registers);
// wmma.cpp
WARPSIM_LOWERING(lower_wmma_load);
WARPSIM_LOWERING(lower_wmma_store);
WARPSIM_LOWERING(lower_wmma_mma);

#undef WARPSIM_LOWERING

// cluster.cpp: an access that may lead to another block's shared memory, in programs that have mapa.
bool may_be_remote(Lowering &, const ptx::Instruction &, bool generic);
// Its op, just emitted: exec_remote runs it. scratch: a slot of 64-bit lanes, asked for before the op was emitted.
void make_remote(Lowering &, Op &, uint32_t scratch, bool generic);
// Of a copy's op: what it does in the block that it names, with its address in slot `to` and another list and extra.
void add_remote_op(Lowering &, Op &, Handler, uint32_t to, uint32_t list, uint32_t extra);
bool reduces_shared(BulkOperation, ptx::Type);  // there is such a reduction to shared memory

}  // namespace warpsim
