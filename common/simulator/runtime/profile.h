// The simulated devices: figures that cudaGetDeviceProperties, launch checks and the occupancy model use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpsim {

struct Profile {
    const char *name;     // "sm_90"
    const char *alias;    // "h200": WARPSIM_DEVICE takes either
    const char *product;  // cudaDeviceProp::name
    unsigned compute;     // 90
    unsigned multiprocessors;
    uint64_t memory_bytes;
    uint64_t l2_bytes;
    uint64_t persisting_l2_bytes;
    unsigned memory_bus_bits;
    unsigned clock_khz, memory_clock_khz;
    unsigned threads_per_multiprocessor;
    unsigned blocks_per_multiprocessor;
    uint32_t shared_per_multiprocessor;
    uint32_t shared_per_block_optin;
    uint32_t shared_reserved;   // the system's own, per block
    unsigned single_to_double;  // ratio of fp32 to fp64 throughput
    unsigned copy_engines;
};

inline constexpr unsigned kPortableClusterBlocks = 8, kMostClusterBlocks = 16;
inline constexpr uint32_t kSharedPerBlock = 48 * 1024;
inline constexpr unsigned kRegistersPerMultiprocessor = 65536;
inline constexpr unsigned kThreadsPerBlock = 1024;
inline constexpr unsigned kMaxRegistersPerThread = 255;

// The profile called `name` (or alias, any case). Throws std::runtime_error that lists the names.
const Profile &find_profile(const std::string &name);

// Blocks of one kernel that fit a multiprocessor at once; 0 if even one does not fit. registers: per thread, 0:
// unknown.
unsigned resident_blocks(const Profile &, unsigned threads, unsigned registers, uint32_t shared_bytes);

// Registers per thread as the hardware allots them: rounded up to 8, at least 16 and at most 255 (then 256 are
// allotted).
unsigned allotted_registers(unsigned registers);

}  // namespace warpsim
