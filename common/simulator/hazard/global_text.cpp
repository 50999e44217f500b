#include "hazard/global_text.h"

#include <algorithm>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "core/text.h"
#include "hazard/global_lines.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

// 4096 as 4,096.
std::string grouped(uint64_t number) {
    std::string text = std::to_string(number);
    for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

constexpr char kTextures[] =
    "what a texture or a surface reads holds what nobody writes while the kernel runs, the thread itself included, and "
    "no barrier or fence makes it see a new value: read it by a pointer, or in another launch";
constexpr char kReadOnly[] =
    "that cache holds what nobody writes while the kernel runs, and no barrier or fence makes it see a new value. The "
    "compiler loads so for __ldg() and where a pointer is const and __restrict__: read by a plain pointer, or in "
    "another launch";

const char *read_only(const Program &program, const GlobalPlace &place) {
    const OpClass cls = program.ops[place.op].cls;
    return cls == OpClass::texture || cls == OpClass::surface ? kTextures : kReadOnly;
}

const char *verb(const Program &program, const GlobalPlace &place) {
    const OpClass cls = program.ops[place.op].cls;
    const bool writes = place.flags & kGlobalWrites;
    if (cls == OpClass::control) return "free";  // of the heap of malloc
    if (cls == OpClass::async_copy) return "cp.async's read";
    if (cls == OpClass::bulk_copy) return writes ? "bulk copy's write" : "bulk copy's read";
    if (cls == OpClass::tensor_copy) return writes ? "TMA copy's write" : "TMA copy's read";
    if (cls == OpClass::atomic) return "atomic update";
    if (cls == OpClass::texture) return "read through a texture";
    if (cls == OpClass::surface) return writes ? "write through a surface" : "read through a surface";
    if (place.flags & kGlobalNoncoherent) return "read through the non-coherent cache (ld.global.nc)";
    if (place.flags & kGlobalStrong) return writes ? "volatile or relaxed write" : "volatile or relaxed read";
    return writes ? "write" : "read";
}

std::string thread_text(const GlobalPlace &place, unsigned warps_of_block) {
    const unsigned warp = place.agent % warps_of_block;
    return "thread " + std::to_string(warp * kLanes + place.lane) + " (warp " + std::to_string(warp) + ", lane " +
           std::to_string(place.lane) + ")";
}

// Strong, by its instruction, for its own block or cluster only.
bool is_narrow(const Program &program, const GlobalPlace &place) {
    const Op &op = program.ops[place.op];
    const bool by_scope = op.cls == OpClass::atomic || op.cls == OpClass::load_global ||
                          op.cls == OpClass::store_global || op.cls == OpClass::load_generic ||
                          op.cls == OpClass::store_generic;
    return by_scope && (op.extra & kStrong) && (op.extra & kTeamScope);
}

// Does the program have a fence that orders nothing for other blocks?
bool has_narrow_fence(const Program &program) {
    return std::any_of(program.debug.begin(), program.debug.end(), [](const auto &op) {
        return op.text.ends_with(".cta") && (op.text.starts_with("membar") || op.text.starts_with("fence."));
    });
}

const char *did(const Program &program, const GlobalPlace &then) {
    if (program.ops[then.op].cls == OpClass::control) return "freed";
    return then.flags & kGlobalWrites ? (then.flags & kGlobalStrong ? "updated" : "wrote") : "read";
}

}  // namespace

std::string access_verb(const Program &program, const GlobalPlace &place) {
    return verb(program, place);
}

std::string access_did(const Program &program, const GlobalPlace &place) {
    return did(program, place);
}

std::string allocation_text(const GlobalMemory &memory, uint64_t address) {
    const AllocationView *view = memory.find(address);
    if (!view) return "the byte at " + hex(address);
    return "byte " + grouped(address - view->base) + " of the " + grouped(view->bytes) + " bytes allocated at " +
           hex(view->base);
}

std::string text_in_block(const Block &block, const GlobalPlace &now, const GlobalPlace &then, unsigned warps_of_block,
                          uint64_t address, HazardKind kind) {
    const Program &program = *block.program;
    const bool peers = now.agent / warps_of_block != then.agent / warps_of_block;
    const std::string here = where(program, now.op), there = where(program, then.op);
    std::string text = std::string(verb(program, now)) + " at " + here + " by " + thread_text(now, warps_of_block) +
                       " of global memory that " + thread_text(then, warps_of_block) +
                       (peers ? " of the cluster's block " + std::to_string(then.agent / warps_of_block) : "") + " " +
                       did(program, then) + " at " + there + ", " + allocation_text(*block.global, address) + ": ";
    if (kind == HazardKind::noncoherent_read) return text + read_only(program, now);
    text += "nothing orders the two. ";
    if (now.op == then.op && now.agent == then.agent && (now.flags & kGlobalWrites))
        return text +
               "The lanes store different values to one place in one instruction, and which one stays is chance. "
               "Let one lane store, give each lane a place of its own, or use an atomic operation";
    text += peers ? "The blocks need a cluster barrier between them"
            : now.agent == then.agent
                ? "Lanes of a warp do not wait for each other by themselves: __syncwarp() or __syncthreads() between "
                  "the two orders them"
                : "A __syncthreads() that both threads pass between the two orders them";
    return text + ", and an atomic operation needs no order";
}

std::string text_between_blocks(const Program &program, const GlobalMemory &memory, const TwoBlocks &both,
                                uint64_t address) {
    const GlobalPlace &now = both.now, &then = both.then;
    std::string text = std::string(verb(program, now)) + " at " + where(program, now.op) + " by " +
                       thread_text(now, both.warps_of_block) + " of block " + both.now_block +
                       " of global memory that " + thread_text(then, both.warps_of_block) + " of block " +
                       both.then_block + " " + did(program, then) + " at " + where(program, then.op) + ", " +
                       allocation_text(memory, address) + ": ";
    if (both.noncoherent) return text + read_only(program, now);
    if (both.same_value)
        return text +
               "nothing orders the two. Both store the same value here, so that it does not matter which one "
               "comes last; a relaxed atomic store says so";
    text += "nothing orders the two blocks. ";
    const std::string narrow =
        has_narrow_fence(program) ? ". A __threadfence_block() orders nothing for other blocks" : "";
    const bool strong_then = then.flags & kGlobalStrong, strong_now = now.flags & kGlobalStrong;
    const bool writes_both = now.flags & then.flags & kGlobalWrites;
    const auto copied = [&](const GlobalPlace &place) {
        const OpClass cls = program.ops[place.op].cls;
        return cls == OpClass::bulk_copy || cls == OpClass::tensor_copy;
    };
    if (both.communicates && copied(then) && !(now.flags & kGlobalWrites))
        return text +
               "The thread that issued the copy must wait until it has written, by cp.async.bulk.wait_group without "
               ".read, and release after that (__threadfence(), then the flag or counter); the reading block needs an "
               "acquire before it";
    for (const GlobalPlace &place : {now, then})
        if (is_narrow(program, place))
            return text + "The access at " + where(program, place.op) +
                   " is atomic for its own block only (atomicAdd_block() and the like, cuda::thread_scope_block, "
                   ".cta): "
                   "give it the device's scope";
    const bool plain_write =
        !writes_both && (now.flags & kGlobalWrites ? !strong_now && strong_then : strong_now && !strong_then);
    if (plain_write && !copied(now) && !copied(then))
        return text +
               "One side reads by an atomic or volatile access, and the other is a plain write. A flag must be written "
               "by such an access, too (volatile, atomicExch(), cuda::atomic_ref); data needs a release after the "
               "write and an acquire before the read";
    if (!strong_now && strong_then && !(now.flags & kGlobalWrites))
        return text +
               "A plain read may see an old value, and the compiler may read it once for a whole loop: read it by "
               "an atomic or volatile access, or behind an acquire";
    if (both.both_read_and_write)
        return text +
               "Each reads the old value and stores a new one, so that updates are lost: use an atomic operation "
               "such as atomicAdd, or give each block a place of its own" +
               (both.communicates ? ". A lock protects it where a __threadfence() stands behind taking it and before "
                                    "giving it back"
                                  : "");
    if (writes_both)
        return text + "Which value stays is chance: give each block a place of its own, or use an atomic operation";
    if (both.communicates && both.released)
        return text +
               "The write has been released (a fence, then a flag or counter). The reading block needs an acquire "
               "before it: a fence after it has seen the flag. So does a block that passes the news on, between what "
               "it has seen and the flag that it sets" +
               narrow;
    if (both.communicates)
        return text +
               "The writing block needs a release after it (__threadfence(), then the flag or counter), and the "
               "reading one an acquire before it; or another launch for what reads" +
               narrow;
    return text +
           "Blocks of one launch run in any order: what reads belongs into another launch, or behind a flag or "
           "counter with __threadfence()";
}

}  // namespace warpsim
