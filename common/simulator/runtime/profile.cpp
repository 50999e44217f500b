#include "runtime/profile.h"

#include <strings.h>

#include <algorithm>
#include <stdexcept>

#include "core/round_up.h"

namespace warpsim {
namespace {

constexpr uint64_t operator""_KiB(unsigned long long n) {
    return n << 10;
}
constexpr uint64_t operator""_MiB(unsigned long long n) {
    return n << 20;
}

// Multiprocessors, caches, buses and clocks: NVIDIA's white papers and data sheets of each product (Turing TU10x,
// GA100, GA102, AD102, GH100 and the T4, A100, H100, H200 data sheets). Threads, blocks and shared memory of a
// multiprocessor: "Technical Specifications per Compute Capability" of the CUDA Programming Guide. Memory sizes: as
// the driver reports them, without what it keeps for itself.
// clang-format off
constexpr Profile kProfiles[] = {
    // name, alias, product, compute capability, multiprocessors, memory, L2, of it for persisting data, bus width,
    // clock and memory clock in kHz; then per multiprocessor: threads, blocks, shared memory; then shared memory of a
    // block at most, and what the system keeps of it; fp32 units per fp64 unit; copy engines
    {"sm_75", "t4", "Tesla T4", 75, 40, 15109_MiB, 4_MiB, 0, 256,
     1590000, 5001000, 1024, 16, 64_KiB, 64_KiB, 0, 32, 3},
    {"sm_80", "a100", "NVIDIA A100-SXM4-40GB", 80, 108, 40536_MiB, 40_MiB, 30_MiB, 5120,
     1410000, 1215000, 2048, 32, 164_KiB, 163_KiB, 1_KiB, 2, 3},
    {"sm_86", "rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 24268_MiB, 6_MiB, 4_MiB, 384,
     1695000, 9751000, 1536, 16, 100_KiB, 99_KiB, 1_KiB, 64, 2},
    {"sm_89", "rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 24564_MiB, 72_MiB, 49_MiB, 384,
     2520000, 10501000, 1536, 24, 100_KiB, 99_KiB, 1_KiB, 64, 2},
    {"sm_90", "h200", "NVIDIA H200", 90, 132, 143167_MiB, 60_MiB, 37_MiB, 6144,
     1980000, 3201000, 2048, 32, 228_KiB, 227_KiB, 1_KiB, 2, 3},
    {"sm_90", "h100", "NVIDIA H100 80GB HBM3", 90, 132, 81105_MiB, 50_MiB, 31_MiB, 5120,
     1980000, 2619000, 2048, 32, 228_KiB, 227_KiB, 1_KiB, 2, 3},
};
// clang-format on

}  // namespace

const Profile &find_profile(const std::string &name) {
    std::string known;
    for (const Profile &profile : kProfiles) {
        if (!strcasecmp(name.c_str(), profile.name) || !strcasecmp(name.c_str(), profile.alias)) return profile;
        if (known.find(profile.name) == std::string::npos) known += std::string(profile.name) + " ";
        known += "(" + std::string(profile.alias) + ") ";
    }
    throw std::runtime_error("WARPSIM_DEVICE=" + name + ": no such device; known are " + known);
}

unsigned allotted_registers(unsigned registers) {
    const unsigned rounded = (std::max(registers, 16u) + 7) / 8 * 8;
    return std::min(rounded, kMaxRegistersPerThread + 1);
}

unsigned resident_blocks(const Profile &profile, unsigned threads, unsigned registers, uint32_t shared_bytes) {
    if (threads == 0 || threads > kThreadsPerBlock || shared_bytes > profile.shared_per_block_optin) return 0;
    const unsigned warps = (threads + 31) / 32;
    unsigned blocks = std::min(profile.blocks_per_multiprocessor, profile.threads_per_multiprocessor / 32 / warps);
    // Registers are allotted to warps in units of 256, and the warps of a block lie evenly over 4 schedulers.
    const unsigned per_warp = allotted_registers(registers) * 32;
    const unsigned warps_that_fit = kRegistersPerMultiprocessor / 4 / per_warp * 4;
    blocks = std::min(blocks, warps_that_fit / warps);
    // Shared memory in units of 128 bytes (256 before compute capability 8.0), and what the system keeps of each block.
    const uint32_t unit = profile.compute >= 80 ? 128 : 256;
    const uint32_t shared = round_up(shared_bytes + profile.shared_reserved, unit);
    if (shared) blocks = std::min(blocks, profile.shared_per_multiprocessor / shared);
    return blocks;
}

}  // namespace warpsim
