// Rows of the table of instructions: copies of boxes of tensors (TMA), and changes of their maps.
#include "exec/bulk_cluster.h"
#include "exec/core_ops.h"
#include "exec/tensor_copy.h"
#include "exec/tensor_map_ops.h"
#include "lower/families.h"
#include "lower/instructions.h"

namespace warpsim {
namespace {

#define DIMENSIONS ".{1d,2d,3d,4d,5d}"
#define TENSOR_COPY(SYNTAX, OPERANDS, FLOW, HANDLER) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, FLOW, HANDLER, lower_tensor_copy}
#define REFUSED(SYNTAX, OPERANDS) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, Flow::straight, nullptr, lower_tensor_refused}
#define MAP_FIELD(FIELD, TYPE, OPERANDS)                                    \
    {"tensormap.replace.tile." FIELD "!{.global,.shared::cta}.b1024." TYPE, \
     OPERANDS,                                                              \
     OpClass::other,                                                        \
     Flow::straight,                                                        \
     exec_map_replace,                                                      \
     lower_map_replace}

constexpr InstructionRow kRows[] = {
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS
                "!.{shared::cta,shared::cluster}.global{.tile}.mbarrier::complete_tx::bytes{.L2::cache_hint}",
                "[a], [b], [c]{, e}", Flow::straight, exec_tensor_load),
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS "!.global.shared::cta{.tile}.bulk_group{.L2::cache_hint}",
                "[a], [b]{, c}", Flow::straight, exec_tensor_store),
    TENSOR_COPY("cp.async.bulk.prefetch.tensor" DIMENSIONS "!.L2.global{.tile}{.L2::cache_hint}", "[a]{, b}",
                Flow::straight, exec_tensor_prefetch),
    TENSOR_COPY("cp.reduce.async.bulk.tensor" DIMENSIONS
                "!.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{.tile}.bulk_group{.L2::cache_hint}",
                "[a], [b]{, c}", Flow::ordered, exec_tensor_reduce),
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS
                "!.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}",
                "[a], [b], [c], e{, f}", Flow::straight, exec_tensor_multicast),
    REFUSED("cp.async.bulk.tensor.{3d,4d,5d}!.{shared::cta,shared::cluster}.global.{im2col,im2col::w,im2col::w::128}"
            ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
            "[a], [b], [c], e{, f}{, g}"),
    REFUSED("cp.async.bulk.tensor.{3d,4d,5d}!.global.shared::cta.im2col_no_offs.bulk_group{.L2::cache_hint}",
            "[a], [b]{, c}"),
    REFUSED("cp.reduce.async.bulk.tensor.{3d,4d,5d}!.global.shared::cta.{add,min,max,inc,dec,and,or,xor}"
            ".im2col_no_offs.bulk_group{.L2::cache_hint}",
            "[a], [b]{, c}"),
    REFUSED("cp.async.bulk.prefetch.tensor.{3d,4d,5d}!.L2.global.{im2col,im2col::w,im2col::w::128}{.L2::cache_hint}",
            "[a], b{, c}"),
    REFUSED("cp.async.bulk.tensor.2d!.{shared::cta,shared::cluster}.global.tile::gather4"
            ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
            "[a], [b], [c]{, e}{, f}"),
    REFUSED("cp.async.bulk.tensor.2d!.global.shared::cta.tile::scatter4.bulk_group{.L2::cache_hint}", "[a], [b]{, c}"),
    REFUSED("cp.async.bulk.prefetch.tensor.2d!.L2.global.tile::gather4{.L2::cache_hint}", "[a]{, b}"),
    MAP_FIELD("global_address", "b64", "[a], b"),
    MAP_FIELD("rank", "b32", "[a], b"),
    MAP_FIELD("{box_dim,global_dim,element_stride}", "b32", "[a], i, b"),
    MAP_FIELD("global_stride", "b64", "[a], i, b"),
    MAP_FIELD("{elemtype,interleave_layout,swizzle_mode,fill_mode}", "b32", "[a], i"),
    {"tensormap.cp_fenceproxy!.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync.aligned",
     "[a], [b], i", OpClass::fence, Flow::warp_sync, exec_map_copy, lower_map_copy},
    {"fence.proxy!.tensormap::generic.acquire.{cta,cluster,gpu,sys}", "[a], i", OpClass::fence, Flow::straight,
     exec_map_acquire, lower_map_acquire},
};

}  // namespace

std::span<const InstructionRow> tensor_copy_rows() {
    return kRows;
}

}  // namespace warpsim
