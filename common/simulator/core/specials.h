// Special registers (%tid.x, %laneid, ...). Those that do not change while a warp runs have slots that are filled when
// a frame is made (machine/frames.cpp); clocks are read by an op.
#pragma once

#include <cstdint>
#include <string_view>

namespace warpsim {

enum class Special : uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    warp_size,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    dynamic_smem_size,
    total_smem_size,
    reserved_smem_bytes,
    reserved_smem_middle,
    zero,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    is_explicit_cluster,
    envreg1,
    envreg2,     // upper and lower half of the address of the grid's workspace
    frame_base,  // the frame's offset in local memory: not PTX's
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,  // read by an op
    unknown,
};

// `name` with its component: "%tid.x". unknown: no special register that warpsim has.
Special special_from_name(std::string_view name);
inline bool is_clock(Special s) {
    return s >= Special::clock && s <= Special::globaltimer_hi;
}
// Bytes of its natural width: 4, 8, or 0 for a predicate.
unsigned special_bytes(Special);

}  // namespace warpsim
