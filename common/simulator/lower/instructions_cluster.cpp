// Rows of the table of instructions: clusters of thread blocks.
#include "exec/async_store.h"
#include "exec/cluster.h"
#include "exec/core_ops.h"
#include "lower/families.h"
#include "lower/instructions.h"

namespace warpsim {
namespace {

#define COMPLETES ".mbarrier::complete_tx::bytes"

constexpr InstructionRow kRows[] = {
    {"mapa{.shared::cluster}.{u32,u64}", "d, a, b", OpClass::integer, Flow::straight, exec_mapa, lower_mapa},
    {"getctarank{.shared::cluster}.{u32,u64}", "d, a", OpClass::integer, Flow::straight, exec_getctarank,
     lower_getctarank},
    {"barrier.cluster.arrive!{.release,.relaxed}{.aligned}", "", OpClass::barrier, Flow::straight, exec_cluster_arrive,
     lower_cluster_barrier},
    {"barrier.cluster.wait!{.acquire}{.aligned}", "", OpClass::barrier, Flow::cluster_wait, exec_nothing,
     lower_cluster_barrier},
    {"st.async!{.weak}{.shared,.shared::cta,.shared::cluster}" COMPLETES "{.v2,.v4}.{b32,b64,u32,u64,s32,s64,f32,f64}",
     "[a], b, [c]", OpClass::store_shared, Flow::straight, exec_async_store, lower_async_store},
    {"red.async!.relaxed.cluster{.shared::cluster}" COMPLETES ".{inc,dec,min,max,and,or,xor,add}.{b32,u32,s32,u64,s64}",
     "[a], b, [c]", OpClass::atomic, Flow::straight, exec_async_reduction, lower_async_store},
};

}  // namespace

std::span<const InstructionRow> cluster_rows() {
    return kRows;
}

}  // namespace warpsim
