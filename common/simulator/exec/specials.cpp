// Fills the slots of special registers when a frame is made.
#include "lower/specials.h"

#include "exec/context.h"

namespace warpsim {

namespace {

uint64_t value_of(const WarpContext &w, const Frame &frame, Special which, unsigned lane) {
    const BlockContext &b = *w.owner;
    const LaunchConfig &config = *b.launch->config;
    const uint32_t thread = w.linear_thread + lane;
    switch (which) {
        case Special::tid_x:
            return thread % b.ntid[0];
        case Special::tid_y:
            return thread / b.ntid[0] % b.ntid[1];
        case Special::tid_z:
            return thread / b.ntid[0] / b.ntid[1];
        case Special::ntid_x:
            return b.ntid[0];
        case Special::ntid_y:
            return b.ntid[1];
        case Special::ntid_z:
            return b.ntid[2];
        case Special::ctaid_x:
            return b.ctaid[0];
        case Special::ctaid_y:
            return b.ctaid[1];
        case Special::ctaid_z:
            return b.ctaid[2];
        case Special::nctaid_x:
            return b.nctaid[0];
        case Special::nctaid_y:
            return b.nctaid[1];
        case Special::nctaid_z:
            return b.nctaid[2];
        case Special::laneid:
            return lane;
        case Special::warpid:
            return w.id;
        case Special::nwarpid:
            return b.warps;
        case Special::smid:
            return b.linear_id % (config.multiprocessors ? config.multiprocessors : 1);
        case Special::nsmid:
            return config.multiprocessors;
        case Special::warp_size:
            return kLanes;
        case Special::lanemask_eq:
            return 1ull << lane;
        case Special::lanemask_le:
            return (2ull << lane) - 1;
        case Special::lanemask_lt:
            return (1ull << lane) - 1;
        case Special::lanemask_ge:
            return uint32_t(~((1ull << lane) - 1));
        case Special::lanemask_gt:
            return uint32_t(~((2ull << lane) - 1));
        case Special::dynamic_smem_size:
            return config.dynamic_shared;
        case Special::total_smem_size:
            return b.shared_bytes;
        case Special::one:
            return 1;
        case Special::envreg1:
            return b.worker->launch->workspace >> 32;
        case Special::envreg2:
            return uint32_t(b.worker->launch->workspace);
        case Special::frame_base:
            return frame.local_base;
        default:
            return 0;
    }
}

}  // namespace

void fill_special(const WarpContext &w, const Frame &frame, uint8_t which, unsigned bytes, std::byte *slot) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint64_t value = value_of(w, frame, Special(which), lane);
        std::memcpy(slot + lane * bytes, &value, bytes);
    }
}

}  // namespace warpsim
