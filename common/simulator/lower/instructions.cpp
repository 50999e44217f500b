#include "lower/instructions.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "exec/bulk_copy.h"
#include "exec/core_ops.h"
#include "exec/lop3.h"
#include "exec/memory.h"
#include "exec/mma.h"
#include "exec/surface.h"
#include "exec/sync_ops.h"
#include "exec/texture.h"
#include "exec/tracking_memory.h"
#include "exec/tracking_warp.h"
#include "exec/video.h"
#include "exec/wmma.h"
#include "lower/families.h"
#include "lower/instruction_syntax.h"

namespace warpsim {
namespace {

#define SCOPE "{.cta,.cluster,.gpu,.sys}"
#define SHARED ".shared,.shared::cta,.shared::cluster"
#define L1_HINTS "{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}"
#define L2_HINTS "{.L2::evict_normal,.L2::evict_first,.L2::evict_last}{.L2::cache_hint}"
// The first of what most lines get, the second of the others.
#define L2_PRIORITY \
    "{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}{.L2::evict_first,.L2::evict_unchanged}"
#define PREFETCH_SIZE "{.L2::64B,.L2::128B,.L2::256B}"
#define VECTOR "{.v2,.v4,.v8}"
#define MEMORY_TYPE ".{b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}"
#define MMA_SHAPE "m8n8k4,m8n8k16,m8n8k32,m8n8k128,m16n8k4,m16n8k8,m16n8k16,m16n8k32,m16n8k64,m16n8k128,m16n8k256"
#define MMA_TYPE ".{f16,bf16,tf32,f32,f64,e4m3,e5m2,s8,u8,s4,u4,b1,s32}"
#define MMA_TYPES MMA_TYPE MMA_TYPE MMA_TYPE MMA_TYPE
#define WMMA_SHAPE "{m16n16k16,m32n8k16,m8n32k16,m16n16k8,m8n8k4,m8n8k32,m8n8k128}"
#define WMMA_TYPE "{f16,bf16,tf32,f32,f64,s8,u8,s4,u4,b1,s32}"
#define INTEGERS ".{u8,u16,u32,u64,s8,s16,s32,s64}"
#define INTEGERS_16 ".{u16,u32,u64,s16,s32,s64}"
#define ROUND ".rn,.rz,.rm,.rp"
#define ROUND_TO_INTEGER ".rni,.rzi,.rmi,.rpi"
#define CVT(SYNTAX) {SYNTAX, "d, a", OpClass::conversion, Flow::straight, nullptr, lower_cvt, passes_conversion}
#define COMPARE "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs,equ,neu,ltu,leu,gtu,geu,num,nan}{.and,.or,.xor}"
#define SET(SYNTAX) {"set." COMPARE SYNTAX, "d, a, b{, c}", OpClass::integer, Flow::straight, nullptr, lower_set}
#define SIGNS ".{u32,s32}"
// The SIMD video instructions of two and of four parts.
#define VIDEO(OPCODE, MODIFIERS)                                                                                       \
    {OPCODE "2" MODIFIERS, "d.part, a.part, b.part, c", OpClass::integer, Flow::straight, exec_video2, lower_video}, { \
        OPCODE "4" MODIFIERS, "d.part, a.part, b.part, c", OpClass::integer, Flow::straight, exec_video4, lower_video  \
    }
#define TEXEL "{1d,2d,3d,a1d,a2d,cube,acube}.v4.{u32,s32,f32}.f32"
#define SURFACE_ELEMENT "{.v2,.v4}.{b8,b16,b32,b64}.{trap,clamp,zero}"
#define ATOMIC_ORDER "{.relaxed,.acquire,.release,.acq_rel}"
#define ATOMIC_TYPE ".{b16,b32,b64,b128,u32,u64,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}"

constexpr InstructionRow kRows[] = {
    // Control flow
    {"bra{.uni}", "label", OpClass::control, Flow::branch, exec_nothing, lower_bra},
    {"brx.idx{.uni}", "a, label", OpClass::control, Flow::indirect, exec_nothing, lower_brx},
    {"call{.uni}", "call", OpClass::control, Flow::call, exec_nothing, lower_call, passes_call},
    {"ret{.uni}", "", OpClass::control, Flow::ret, exec_nothing, lower_plain},
    {"exit", "", OpClass::control, Flow::exit, exec_nothing, lower_plain},
    // Nothing need follow a trap, not even in the array of ops: it ends a run of straight-line ops.
    {"trap", "", OpClass::control, Flow::yield, exec_trap, lower_plain},
    {"brkpt", "", OpClass::control, Flow::yield, exec_trap, lower_plain},
    {"nanosleep.u32", "a", OpClass::other, Flow::yield, exec_nothing, lower_nanosleep},
    // The stack in local memory.
    {"alloca.{u32,u64}", "d, a{, i}", OpClass::other, Flow::straight, nullptr, lower_alloca},
    {"stacksave.{u32,u64}", "d", OpClass::other, Flow::straight, nullptr, lower_stack_save},
    {"stackrestore.{u32,u64}", "a", OpClass::other, Flow::straight, nullptr, lower_stack_restore},
    // Hints to the hardware that change no result: the profiler's events, dependent launches (a launch begins here when
    // the one before it has ended).
    {"pmevent{.mask}", "i", OpClass::control, Flow::straight, exec_nothing, lower_plain},
    {"griddepcontrol.{launch_dependents,wait}", "", OpClass::control, Flow::straight, exec_let_dependents_start,
     lower_griddepcontrol},

    // Barriers and fences. Memory is consistent here anyway; a fence matters to the hazard detector.
    {"bar.warp.sync!", "a", OpClass::barrier, Flow::warp_sync, exec_warp_barrier, lower_warp_barrier, passes_nothing},
    {"bar{.cta}.sync!", "a{, b}", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.arrive!", "a, b", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.red!.popc.u32", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.red!.{and,or}.pred", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.sync!{.aligned}", "a{, b}", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.arrive!{.aligned}", "a, b", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.red!.popc{.aligned}.u32", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing,
     lower_barrier},
    {"barrier{.cta}.red!.{and,or}{.aligned}.pred", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing,
     lower_barrier},
    {"membar.{cta,gl,sys}", "", OpClass::fence, Flow::straight, exec_fence, lower_fence},
    {"membar.proxy!.alias", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence{.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}", "", OpClass::fence, Flow::straight, exec_fence,
     lower_fence},
    {"fence.acquire.sync_restrict::shared::cluster.cluster", "", OpClass::fence, Flow::straight, exec_fence,
     lower_plain},
    {"fence.release.sync_restrict::shared::cta.cluster", "", OpClass::fence, Flow::straight, exec_fence, lower_fence},
    {"fence.mbarrier_init!.release.cluster", "", OpClass::fence, Flow::straight, exec_mbarrier_fence, lower_plain},
    {"fence.proxy!.alias", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence.proxy!.async{.shared::cta,.shared::cluster}", "", OpClass::fence, Flow::straight, exec_proxy_fence,
     lower_plain},
    // Of global memory alone: what was written to shared memory is not behind it.
    {"fence.proxy!.async.global", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence.proxy!.async::generic.acquire.sync_restrict::shared::cluster.cluster", "", OpClass::fence, Flow::straight,
     exec_proxy_fence, lower_plain},
    {"fence.proxy!.async::generic.release.sync_restrict::shared::cta.cluster", "", OpClass::fence, Flow::straight,
     exec_proxy_fence, lower_plain},
    {"fence.proxy!.tensormap::generic.release.{cta,cluster,gpu,sys}", "", OpClass::fence, Flow::straight, exec_fence,
     lower_plain},

    // Memory. The class of loads and stores is that of their state space.
    {"ld{.weak,.volatile,.relaxed,.acquire}{.mmio}" SCOPE "{.global," SHARED
     ",.local,.const,.param,.param::entry,.param::func}{.ca,.cg,.cs,.lu,.cv}{.nc}" L1_HINTS L2_HINTS PREFETCH_SIZE
         VECTOR MEMORY_TYPE,
     "d, [a].unified{, b}", OpClass::load_generic, Flow::straight, nullptr, lower_load, passes_load},
    {"ldu{.global}" VECTOR MEMORY_TYPE, "d, [a]", OpClass::load_generic, Flow::straight, nullptr, lower_load,
     passes_load},
    {"st{.weak,.volatile,.relaxed,.release}{.mmio}" SCOPE "{.global," SHARED
     ",.local,.param,.param::func}{.wb,.cg,.cs,.wt}" L1_HINTS L2_HINTS VECTOR MEMORY_TYPE,
     "[a], b{, c}", OpClass::store_generic, Flow::straight, nullptr, lower_store, passes_store},
    {"prefetch{.global,.local}.{L1,L2}", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"prefetch{.global}.{L2::evict_last,L2::evict_normal}", "[a]", OpClass::other, Flow::straight, exec_nothing,
     lower_plain},
    {"prefetch{.const,.param}.tensormap", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"prefetchu.L1", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"discard{.global}.L2", "[a], i", OpClass::other, Flow::straight, exec_check_address, lower_address_check},
    {"applypriority{.global}.L2::evict_normal", "[a], i", OpClass::other, Flow::straight, exec_check_address,
     lower_address_check},
    {"createpolicy.fractional!." L2_PRIORITY ".b64", "d{, a}", OpClass::move, Flow::straight, nullptr,
     lower_createpolicy},
    {"createpolicy.range!{.global}." L2_PRIORITY ".b64", "d, [a], b, c", OpClass::move, Flow::straight, nullptr,
     lower_createpolicy},
    {"createpolicy.cvt!.L2.b64", "d, a", OpClass::move, Flow::straight, nullptr, lower_createpolicy},
    {"atom" ATOMIC_ORDER SCOPE "{.global," SHARED
     "}.{add,min,max,and,or,xor,inc,dec,exch}{.noftz}{.L2::cache_hint}" VECTOR ATOMIC_TYPE,
     "d, [a], b{, c}", OpClass::atomic, Flow::yield, nullptr, lower_atom, passes_atomic},
    {"atom" ATOMIC_ORDER SCOPE "{.global," SHARED "}.cas{.L2::cache_hint}" ATOMIC_TYPE, "d, [a], b, c{, e}",
     OpClass::atomic, Flow::yield, nullptr, lower_atom, passes_atomic},
    {"red{.relaxed,.release}" SCOPE "{.global," SHARED
     "}.{add,min,max,and,or,xor,inc,dec}{.noftz}{.L2::cache_hint}" VECTOR ATOMIC_TYPE,
     "[a], b{, c}", OpClass::atomic, Flow::straight, nullptr, lower_red, passes_atomic},

    // Warps
    {"shfl.sync.{up,down,bfly,idx}.b32", "d|p, a, b, c, e", OpClass::shuffle, Flow::warp_sync, nullptr, lower_shfl,
     passes_shuffle},
    {"vote.sync.{all,any,uni}.pred", "d, a, b", OpClass::vote, Flow::warp_sync, exec_vote, lower_vote, passes_vote},
    {"vote.sync.ballot.b32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_vote, lower_vote, passes_vote},
    {"match.any.sync.{b32,b64}", "d, a, b", OpClass::vote, Flow::warp_sync, nullptr, lower_match, passes_group},
    {"match.all.sync.{b32,b64}", "d|p, a, b", OpClass::vote, Flow::warp_sync, nullptr, lower_match, passes_group},
    {"redux.sync.{add,min,max}.{u32,s32}", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux,
     passes_group},
    {"redux.sync.{and,or,xor}.b32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux, passes_group},
    {"redux.sync.{min,max}{.abs}{.NaN}.f32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux,
     passes_group},
    {"activemask.b32", "d", OpClass::vote, Flow::straight, exec_active_mask, lower_activemask},
    {"elect.sync", "d|p, a", OpClass::vote, Flow::warp_sync, exec_elect, lower_elect},

    // Matrices
    {"mma.sync.aligned.{" MMA_SHAPE "}.{row,col}.{row,col}{.satfinite}" MMA_TYPES "{.xor,.and}{.popc}", "d, a, b, c",
     OpClass::tensor, Flow::warp_sync, nullptr, lower_mma, passes_mma},
    {"ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared,.shared::cta}.b16", "d, [a]", OpClass::ldmatrix,
     Flow::warp_sync, exec_ldmatrix, lower_ldmatrix, passes_load},
    {"stmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared,.shared::cta}.b16", "[a], b", OpClass::stmatrix,
     Flow::warp_sync, exec_stmatrix, lower_stmatrix, passes_store},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "d, a", OpClass::shuffle, Flow::warp_sync, exec_movmatrix,
     lower_movmatrix, passes_copies},
    {"wmma.load.{a,b,c}!.sync.aligned.{row,col}." WMMA_SHAPE "{.global,.shared,.shared::cta}." WMMA_TYPE, "d, [a]{, b}",
     OpClass::load_generic, Flow::warp_sync, exec_wmma_load, lower_wmma_load, passes_load},
    {"wmma.store.d!.sync.aligned.{row,col}." WMMA_SHAPE "{.global,.shared,.shared::cta}." WMMA_TYPE, "[a], b{, c}",
     OpClass::store_generic, Flow::warp_sync, exec_wmma_store, lower_wmma_store, passes_store},
    {"wmma.mma{.xor,.and}{.popc}!.sync.aligned*", "d, a, b, c", OpClass::tensor, Flow::warp_sync, nullptr,
     lower_wmma_mma, passes_mma},

    // Textures and surfaces, by the handles of their objects
    {"tex{.base}." TEXEL, "d|p, [a]", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tex{.base}.{1d,2d,3d,a1d,a2d}.v4.{u32,s32,f32}.s32", "d|p, [a]", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"tex.level.{1d,2d,3d,a1d,a2d}.v4.{u32,s32,f32}.s32", "d|p, [a], b", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"tex.level." TEXEL, "d|p, [a], b", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tex.grad." TEXEL, "d|p, [a], b, c", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tld4.{r,g,b,a}.2d.v4.{u32,s32,f32}.f32", "d|p, [a]", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"txq.{width,height,depth,array_size,num_mipmap_levels,normalized_coords}.b32", "d, [a]", OpClass::other,
     Flow::straight, exec_texture_query, lower_image_query},
    {"txq.level.{width,height,depth}.b32", "d, [a], b", OpClass::other, Flow::straight, exec_texture_query,
     lower_image_query},
    {"suld.b.{1d,2d,3d,a1d,a2d}{.ca,.cg,.cs,.cv}" SURFACE_ELEMENT, "d, [a]", OpClass::surface, Flow::straight,
     exec_surface_load, lower_surface_load},
    {"sust.b.{1d,2d,3d,a1d,a2d}{.wb,.cg,.cs,.wt}" SURFACE_ELEMENT, "[a], b", OpClass::surface, Flow::straight,
     exec_surface_store, lower_surface_store},
    {"suq.{width,height,depth,array_size}.b32", "d, [a]", OpClass::other, Flow::straight, exec_surface_query,
     lower_image_query},

    // Moves, conversions, comparisons and logic beyond the generated forms
    {"mov.{pred,b16,b32,b64,b128,u16,u32,u64,s16,s32,s64,f32,f64}", "d, a", OpClass::move, Flow::straight, nullptr,
     lower_mov, passes_copies},
    CVT("cvt{.sat}" INTEGERS INTEGERS),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f32" INTEGERS),
    CVT("cvt.{" ROUND "}{.sat}.{f16,f64}" INTEGERS),
    CVT("cvt.{" ROUND "}.bf16" INTEGERS_16),
    CVT("cvt.{" ROUND_TO_INTEGER "}{.ftz}{.sat}" INTEGERS ".f32"),
    CVT("cvt.{" ROUND_TO_INTEGER "}{.sat}" INTEGERS ".{f16,f64}"),
    CVT("cvt.{" ROUND_TO_INTEGER "}" INTEGERS_16 ".bf16"),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f32.f64"),
    CVT("cvt.{" ROUND "}{.sat}.f16.f64"),
    CVT("cvt.{" ROUND "}.bf16.f64"),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f16.f32"),
    CVT("cvt.{rn,rz}{.relu}{.satfinite}.{f16,bf16,tf32}.f32"),
    CVT("cvt.{" ROUND "}{.ftz}.bf16.f32"),
    CVT("cvt.rna{.satfinite}.tf32.f32"),
    CVT("cvt{" ROUND "}.bf16.f16"),
    CVT("cvt{" ROUND "}.{f16,f64}.bf16"),
    CVT("cvt{" ROUND "}{.ftz}.f32.bf16"),
    CVT("cvt{.ftz}{.sat}.f32.f16"),
    CVT("cvt{.ftz}{.sat}.f64.f32"),
    CVT("cvt{.sat}.f64.f16"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.ftz}{.sat}.f32.f32"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.sat}.f16.f16"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.sat}.f64.f64"),
    CVT("cvt{" ROUND_TO_INTEGER "}.bf16.bf16"),
    {"cvt.{rn,rz}{.relu}{.satfinite}.{f16x2,bf16x2}.f32", "d, a, b", OpClass::conversion, Flow::straight, nullptr,
     lower_cvt, passes_conversion},
    {"cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f32", "d, a, b", OpClass::conversion, Flow::straight, nullptr, lower_cvt,
     passes_conversion},
    CVT("cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f16x2"),
    CVT("cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}"),
    {"cvt.pack!.sat.{u16,s16}.s32", "d, a, b", OpClass::conversion, Flow::straight, nullptr, lower_cvt_pack},
    {"cvt.pack!.sat.{u2,s2,u4,s4,u8,s8}.s32.b32", "d, a, b, c", OpClass::conversion, Flow::straight, nullptr,
     lower_cvt_pack},
    {"cvta{.to}!.{global,"
     "shared,shared::cta,shared::cluster,local,const,param,param::entry}.u64",
     "d, a", OpClass::conversion, Flow::straight, nullptr, lower_cvta},
    {"isspacep.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry}", "d, a", OpClass::predicate,
     Flow::straight, nullptr, lower_isspacep},
    {"prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "d, a, b, c", OpClass::move, Flow::straight, nullptr, lower_prmt,
     passes_bits<kMovesAB>},
    {"setp." COMPARE "{.ftz}.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}", "d|p, a, b{, c}",
     OpClass::predicate, Flow::straight, nullptr, lower_setp, passes_comparison},
    SET(".{u32,s32,f32,f16,bf16}.{b16,b32,b64,u16,u32,u64,s16,s32,s64}"),
    SET("{.ftz}.{u32,s32,u16,s16}.{f16,bf16}"),
    SET("{.ftz}.{u32,s32}.{f32,f64,f16x2,bf16x2}"),
    SET("{.ftz}.f32.{f32,f64}"),
    SET("{.ftz}.f16.{f16,f32,f64}"),
    SET(".bf16.{bf16,f16,f32,f64}"),
    SET("{.ftz}.f16x2.f16x2"),
    SET(".bf16x2.bf16x2"),
    {"lop3.b32", "d, a, b, c, i", OpClass::integer, Flow::straight, nullptr, lower_lop3, passes_lop3},
    {"lop3.{or,and}.b32", "d|p, a, b, c, i, e", OpClass::integer, Flow::straight, exec_lop3_predicate,
     lower_lop3_predicate, passes_lop3},

    // Arithmetic: classes, types and handlers of the forms stand beside the handlers.
    {"abs*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"neg*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_negation},
    {"not*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableNotA>},
    {"cnot*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"popc*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"clz*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bfind*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"brev*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"rcp*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sqrt*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"rsqrt*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sin*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"cos*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"lg2*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"ex2*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"tanh*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"testp*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sub*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_difference},
    {"mul*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{u16,u32,u64,s16,s32,s64}", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.full!{.ftz}.f32", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{approx," ROUND "}{.ftz}.f32", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{" ROUND "}.f64", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"rem*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"and*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA & kTableB>},
    {"or*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA | kTableB>},
    {"xor*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_logic<kTableA ^ kTableB>},
    {"shl*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"shr*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"mul24*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"addc*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"subc*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"szext*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bmsk*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"copysign*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"add*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_sum},
    {"min*", "d, a, b{, c}", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"max*", "d, a, b{, c}", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"mad*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"fma*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"mad24*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"madc*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sad*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"shf*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"dp4a*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"dp2a*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"bfe*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesA>},
    {"fns*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"selp*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"slct*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"bfi*", "d, a, b, c, e", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},

    // Video instructions
    VIDEO("vadd", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vsub", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vavrg", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vmin", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vmax", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vabsdiff", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vset", SIGNS SIGNS ".{eq,ne,lt,le,gt,ge}{.add}"),
};

// Instructions that are PTX and that warpsim leaves out as a whole.
constexpr std::string_view kNotSimulated[] = {
    "clusterlaunchcontrol",
    "istypep",
    "multimem",
    "tcgen05",
    // Scalar video instructions: ptxas replaces them on today's GPUs, with other results than the manual's (.sat, .h1).
    "vabsdiff",
    "vadd",
    "vmad",
    "vmax",
    "vmin",
    "vset",
    "vshl",
    "vshr",
    "vsub",
};

const InstructionSyntax &syntax() {
    static const InstructionSyntax compiled(
        {kRows, asynchronous_rows(), cluster_rows(), tensor_copy_rows(), wgmma_rows()});
    return compiled;
}

}  // namespace

const InstructionRow *find_row(const ptx::Instruction &in, std::vector<std::string> &ordered, std::string &why) {
    const InstructionRow *row = syntax().find(in, ordered, why);
    const bool known =
        std::find(std::begin(kNotSimulated), std::end(kNotSimulated), in.opcode) != std::end(kNotSimulated);
    if (!row && known) why = "it is PTX, but warpsim does not simulate " + in.opcode;
    return row;
}

Flow flow_of(const ptx::Instruction &in) {
    return syntax().flow_of(in);
}

bool writes_first_operand(const ptx::Instruction &in) {
    return syntax().writes_first_operand(in);
}

}  // namespace warpsim
