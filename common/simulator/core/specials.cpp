#include "core/specials.h"

#include <map>

namespace warpsim {

Special special_from_name(std::string_view name) {
    static const std::map<std::string_view, Special> kNames = {
        {"%tid.x", Special::tid_x},
        {"%tid.y", Special::tid_y},
        {"%tid.z", Special::tid_z},
        {"%ntid.x", Special::ntid_x},
        {"%ntid.y", Special::ntid_y},
        {"%ntid.z", Special::ntid_z},
        {"%ctaid.x", Special::ctaid_x},
        {"%ctaid.y", Special::ctaid_y},
        {"%ctaid.z", Special::ctaid_z},
        {"%nctaid.x", Special::nctaid_x},
        {"%nctaid.y", Special::nctaid_y},
        {"%nctaid.z", Special::nctaid_z},
        {"%laneid", Special::laneid},
        {"%warpid", Special::warpid},
        {"%nwarpid", Special::nwarpid},
        {"%smid", Special::smid},
        {"%nsmid", Special::nsmid},
        {"%gridid", Special::gridid},
        {"WARP_SZ", Special::warp_size},
        {"%lanemask_eq", Special::lanemask_eq},
        {"%lanemask_le", Special::lanemask_le},
        {"%lanemask_lt", Special::lanemask_lt},
        {"%lanemask_ge", Special::lanemask_ge},
        {"%lanemask_gt", Special::lanemask_gt},
        {"%dynamic_smem_size", Special::dynamic_smem_size},
        {"%total_smem_size", Special::total_smem_size},
        // The system's part of shared memory, Program::reserved_shared. cooperative_groups has its own 288 bytes of it.
        {"%reserved_smem_offset_begin", Special::zero},
        {"%reserved_smem_offset_end", Special::reserved_smem_bytes},
        {"%reserved_smem_offset_cap", Special::reserved_smem_bytes},
        {"%reserved_smem_offset_0", Special::zero},
        {"%reserved_smem_offset_1", Special::reserved_smem_middle},
        // A launch without clusters is one of 1x1x1 clusters.
        {"%cluster_ctaid.x", Special::cluster_ctaid_x},
        {"%cluster_ctaid.y", Special::cluster_ctaid_y},
        {"%cluster_ctaid.z", Special::cluster_ctaid_z},
        {"%cluster_nctaid.x", Special::cluster_nctaid_x},
        {"%cluster_nctaid.y", Special::cluster_nctaid_y},
        {"%cluster_nctaid.z", Special::cluster_nctaid_z},
        {"%clusterid.x", Special::clusterid_x},
        {"%clusterid.y", Special::clusterid_y},
        {"%clusterid.z", Special::clusterid_z},
        {"%nclusterid.x", Special::nclusterid_x},
        {"%nclusterid.y", Special::nclusterid_y},
        {"%nclusterid.z", Special::nclusterid_z},
        {"%cluster_ctarank", Special::cluster_ctarank},
        {"%cluster_nctarank", Special::cluster_nctarank},
        {"%is_explicit_cluster", Special::is_explicit_cluster},
        {"%clock", Special::clock},
        {"%clock_hi", Special::clock_hi},
        {"%clock64", Special::clock64},
        {"%globaltimer", Special::globaltimer},
        {"%globaltimer_lo", Special::globaltimer_lo},
        {"%globaltimer_hi", Special::globaltimer_hi},
        // cooperative_groups finds its grid's workspace through these.
        {"%envreg1", Special::envreg1},
        {"%envreg2", Special::envreg2},
        {"%current_graph_exec", Special::zero},
    };
    const auto found = kNames.find(name);
    return found == kNames.end() ? Special::unknown : found->second;
}

unsigned special_bytes(Special s) {
    if (s == Special::is_explicit_cluster) return 0;
    return s == Special::gridid || s == Special::clock64 || s == Special::globaltimer ? 8 : 4;
}

}  // namespace warpsim
