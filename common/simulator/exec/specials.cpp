// Fills the slots of special registers when a frame is made.
#include "core/specials.h"

#include <algorithm>

#include "exec/context.h"

namespace warpsim {

namespace {

// The same for all lanes.
uint64_t uniform_value(const WarpContext &w, const Frame &frame, Special which) {
    const BlockContext &b = *w.owner;
    const LaunchConfig &config = *b.worker->launch->config;
    switch (which) {
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
        case Special::warpid:
            return w.id;
        case Special::nwarpid:
            return b.warps;
        case Special::smid:
            return b.linear_id % std::max(1u, config.multiprocessors);
        case Special::nsmid:
            return config.multiprocessors;
        case Special::warp_size:
            return kLanes;
        case Special::dynamic_smem_size:
            return config.dynamic_shared;
        case Special::total_smem_size:
            return b.shared_bytes - b.program->reserved_shared;
        case Special::reserved_smem_bytes:
            return b.program->reserved_shared;
        case Special::reserved_smem_middle:
            return b.program->reserved_shared / 2;
        case Special::cluster_ctaid_x:
            return b.ctaid[0] % config.cluster[0];
        case Special::cluster_ctaid_y:
            return b.ctaid[1] % config.cluster[1];
        case Special::cluster_ctaid_z:
            return b.ctaid[2] % config.cluster[2];
        case Special::cluster_nctaid_x:
            return config.cluster[0];
        case Special::cluster_nctaid_y:
            return config.cluster[1];
        case Special::cluster_nctaid_z:
            return config.cluster[2];
        case Special::cluster_ctarank:
            return b.rank;
        case Special::cluster_nctarank:
            return config.cluster_blocks();
        case Special::clusterid_x:
            return b.ctaid[0] / config.cluster[0];
        case Special::clusterid_y:
            return b.ctaid[1] / config.cluster[1];
        case Special::clusterid_z:
            return b.ctaid[2] / config.cluster[2];
        case Special::nclusterid_x:
            return b.nctaid[0] / config.cluster[0];
        case Special::nclusterid_y:
            return b.nctaid[1] / config.cluster[1];
        case Special::nclusterid_z:
            return b.nctaid[2] / config.cluster[2];
        case Special::is_explicit_cluster:
            return config.explicit_cluster ? kAllLanes : 0;
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

void write_all_lanes(std::byte *slot, uint32_t value) {
    auto *lanes = reinterpret_cast<uint32_t *>(slot);
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes[lane] = value;
}

// Writes f(lane) in lanes of `bytes`.
template <class F>
void fill(std::byte *slot, unsigned bytes, F f) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint64_t value = f(lane);
        std::memcpy(slot + lane * bytes, &value, bytes);
    }
}

}  // namespace

bool differs_between_blocks(uint8_t which) {
    switch (Special(which)) {
        case Special::ctaid_x:
        case Special::ctaid_y:
        case Special::ctaid_z:
        case Special::smid:
        case Special::cluster_ctaid_x:
        case Special::cluster_ctaid_y:
        case Special::cluster_ctaid_z:
        case Special::cluster_ctarank:
        case Special::clusterid_x:
        case Special::clusterid_y:
        case Special::clusterid_z:
            return true;
        default:
            return false;
    }
}

void fill_special(const WarpContext &w, const Frame &frame, uint8_t which, unsigned bytes, std::byte *slot) {
    const uint32_t *ntid = w.block->ntid;
    const uint32_t thread = w.linear_thread;
    switch (Special(which)) {
        case Special::tid_x:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) % ntid[0]; });
        case Special::tid_y:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) / ntid[0] % ntid[1]; });
        case Special::tid_z:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) / ntid[0] / ntid[1]; });
        case Special::laneid:
            return fill(slot, bytes, [](uint32_t lane) { return lane; });
        case Special::lanemask_eq:
            return fill(slot, bytes, [](uint32_t lane) { return 1u << lane; });
        case Special::lanemask_le:
            return fill(slot, bytes, [](uint32_t lane) { return (2ull << lane) - 1; });
        case Special::lanemask_lt:
            return fill(slot, bytes, [](uint32_t lane) { return (1u << lane) - 1; });
        case Special::lanemask_ge:
            return fill(slot, bytes, [](uint32_t lane) { return 0u - (1u << lane); });
        case Special::lanemask_gt:
            return fill(slot, bytes, [](uint32_t lane) { return uint32_t(0) - uint32_t(2ull << lane); });
        default:
            break;
    }
    const uint64_t value = uniform_value(w, frame, Special(which));
    if (bytes == 0) {
        std::memcpy(slot, &value, sizeof(uint32_t));  // a predicate
    } else if (bytes == 4) {
        write_all_lanes(slot, uint32_t(value));
    } else {
        fill(slot, bytes, [=](uint32_t) { return value; });
    }
}

}  // namespace warpsim
