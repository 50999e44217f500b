// Warps that hold undefined values. A warp runs as if there were none until a load brings one, or a function is entered
// that may read registers before it writes them. From then on its frame has a RegisterShadow, and each op first passes
// the undefined bits on (core/dataflow.h); until all registers of the frame are defined again.
//
// Loads and stores call what is below for undefined values on their way between registers and memory, after they have
// moved the data, where w.undefined or something undefined in that memory says that there may be any.
#pragma once

#include "core/dataflow.h"
#include "definedness/registers.h"
#include "hazard/shared_shadow.h"
#include "machine/addresses.h"
#include "machine/context.h"

namespace warpsim {

// Thrown by end_of_load() out of the loop that does not track.
struct TrackingBegan {};

// The registers of this frame are those that ops see.
inline void use_frame(WarpContext &w, Frame &frame) {
    w.frame = &frame;
    w.regs = frame.regs;
    w.undefined = frame.tracked ? frame.shadow.get() : nullptr;
}

// The current frame's shadow, made where there is none.
RegisterShadow &begin_tracking(WarpContext &);
// A new frame: registers that nothing writes before they are read are undefined.
void prepare_shadow(WarpContext &, Frame &);

// Runs an op that only reads and writes registers and memory, guarded or not, in a frame that is tracked.
void run_tracked(WarpContext &, const Op &, uint32_t mask);
// Before an op that ends a run of straight-line ops: what decides its course must be defined.
void check_tracked(WarpContext &, const Op &, uint32_t mask);

// Elements of `shape` in the given slots, lane i's at offset[i] of shared memory. used: a bit for each byte that
// matters.
void note_shared_load(Warp &, const Op &, const uint32_t *slots, const AccessShape &, const uint32_t *offset,
                      uint32_t exec, uint32_t used = ~0u);
void note_shared_store(Warp &, const Op &, const uint32_t *slots, const AccessShape &, const uint32_t *offset,
                       uint32_t exec);
// A fragment's register whose undefined bits have been brought together: lane's at bits + lane * register bytes.
// from: for each lane the offset in shared memory of (some of) what it got.
void note_loaded_fragment(Warp &, const Op &, OperandSlot, const void *bits, const uint32_t *from);
// Where what an op reads came from, of the first lane in which it is undefined; 0: it is defined.
uint32_t first_origin(Warp &, const Op &);
// The same at host[i] in local memory.
void note_local_load(Warp &, const Op &, const uint32_t *slots, const AccessShape &, const uint64_t *host,
                     uint32_t exec);
void note_local_store(Warp &, const Op &, const uint32_t *slots, const AccessShape &, const uint64_t *host,
                      uint32_t exec);

// After an atomic operation on `bytes` at the lanes' offsets in shared memory. stored: lanes that a cas let through.
enum class Exchange : uint8_t { never, always, compared };
void note_shared_atomic(Warp &, const Op &, unsigned bytes, const uint32_t *offset, uint32_t exec, Exchange,
                        uint32_t stored);
// Is one of these bytes of shared or local memory undefined, as the lane sees them? Then says where it came from.
bool undefined_generic(Warp &, unsigned lane, uint64_t address, size_t bytes, uint32_t &origin);

inline bool tracks_shared(const Warp &w) {
    return w.block->shadow && (w.undefined || w.block->shadow->undefined());
}
inline bool tracks_local(const Warp &w) {
    return w.undefined_local && (w.undefined || w.undefined_local->any());
}

// The last thing that a load does: throws TrackingBegan where it has brought the frame's first undefined value.
[[noreturn]] void leave_untracked(Warp &);
inline void end_of_load(Warp &w) {
    if (w.tracking_began) [[unlikely]]
        leave_untracked(w);
}

// Rules.
void passes_load(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_store(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_atomic(Warp &, const Op &, const DataFlow &, uint32_t lanes);
void passes_call(Warp &, const Op &, const DataFlow &, uint32_t lanes);

}  // namespace warpsim
