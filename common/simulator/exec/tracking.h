// Warps that hold undefined values. A warp runs as if there were none until a load brings one, or a function is entered
// that may read registers before it writes them. From then on its frame has a RegisterShadow, and each op first passes
// the undefined bits on (core/dataflow.h); until all registers of the frame are defined again.
#pragma once

#include "definedness/registers.h"
#include "exec/context.h"

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
}  // namespace warpsim
