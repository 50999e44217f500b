// Rows of the table of instructions: copies of boxes of tensors (TMA).
#include "exec/bulk_cluster.h"
#include "exec/core_ops.h"
#include "exec/tensor_copy.h"
#include "lower/families.h"
#include "lower/instructions.h"

namespace warpsim {
namespace {

#define DIMENSIONS ".{1d,2d,3d,4d,5d}"
#define TENSOR_COPY(SYNTAX, OPERANDS, FLOW, HANDLER) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, FLOW, HANDLER, lower_tensor_copy}
#define REFUSED(SYNTAX, OPERANDS) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, Flow::straight, nullptr, lower_tensor_refused}

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
};

}  // namespace

std::span<const InstructionRow> tensor_copy_rows() {
    return kRows;
}

}  // namespace warpsim
