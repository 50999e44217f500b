// What one launch did: counters of ops, and the report that is made of them. report/ turns it into a table and JSON.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hazard_kind.h"
#include "core/op.h"
#include "core/op_formats.h"
#include "core/trace.h"

namespace warpsim {

struct Program;

// Per worker thread and op; summed into the launch's report when the launch ends.
struct OpStats {
    uint64_t issued = 0;  // warp instructions (one per execution by at least one lane)
    uint64_t shared_wavefronts = 0, shared_ideal = 0;
    uint64_t global_sectors = 0, global_ideal = 0, global_bytes = 0;
    uint64_t divergent = 0;    // branches that split the warp
    uint64_t bulk_copies = 0;  // one for each lane; boxes of tensors too
    uint64_t bulk_bytes = 0;
    uint64_t tensor_sectors = 0;     // of global memory, by boxes of tensors
    uint64_t waits = 0, waited = 0;  // for mbarriers' phases; those that found the phase open
};

// A call that was inlined: of `function`, in which the code lies (or the call before), at file:line.
struct CallSite {
    std::string file;
    uint32_t line = 0;
    std::string function;  // "load_tile"; empty: unknown
    auto operator<=>(const CallSite &) const = default;
};

struct HazardRecord {
    HazardKind kind{};
    std::string file;
    uint32_t line = 0;
    std::vector<CallSite> inlined;  // the calls that lead there, the innermost first
    uint32_t block[3] = {};
    uint32_t warp = 0;
    int lane = -1;
    uint64_t address = 0;
    std::string message;  // one full sentence, with both source lines where there are two
    bool note = false;    // no hazard: what ptxas repairs
    uint64_t count = 1;   // further hazards of the same kind at the same line (and other side) are only counted
};

struct SharedCount {
    uint64_t wavefronts = 0;
    std::optional<uint64_t> ideal = 0;
};
struct GlobalCount {
    uint64_t sectors = 0, ideal = 0, bytes = 0;
};

struct BulkCount {
    uint64_t copies = 0, bytes = 0;
};

// Copies of boxes (TMA).
struct TensorCount {
    uint64_t copies = 0, bytes = 0;  // bytes of whole boxes, what lies outside of the tensor too
    uint64_t sectors = 0;            // of 32 bytes that the boxes' rows touch in global memory
};

// wgmma of one shape: once for each warpgroup, and what it reads of shared memory in passes of 128 bytes.
struct WgmmaCount {
    uint64_t count = 0, wavefronts = 0;
};

// Of a header's line one for each chain of calls that lead there; calls within the kernel's own file are not told
// apart.
struct LineCount {
    std::string file;
    uint32_t line = 0;
    std::vector<CallSite> inlined;  // the innermost first
    uint64_t instructions = 0, shared_wavefronts = 0, shared_ideal = 0, global_sectors = 0, global_ideal = 0;
    uint64_t bulk_bytes = 0, tensor_sectors = 0, mbarrier_waits = 0, mbarrier_waited = 0;
    uint64_t wgmma_wavefronts = 0;
};

// One execution of an instruction that touches shared or global memory, lane by lane (WARPSIM_ACCESSES).
struct AccessRecord {
    std::string file;
    uint32_t line = 0, ptx_line = 0;
    std::vector<CallSite> inlined;  // as in LineCount
    bool shared = false;
    const char *kind = "";  // "load", "store", "ldmatrix", "stmatrix", "cp_async", "atomic"
    unsigned bytes = 0;     // of each lane; of a matrix's row
    unsigned matrices = 0;  // of ldmatrix and stmatrix
    uint32_t lanes = 0;
    std::array<uint64_t, kLanes> addresses{};  // offsets in shared memory, or global addresses
    unsigned cost = 0, ideal = 0;              // wavefronts or sectors
};

// One copy of a box of a tensor (WARPSIM_ACCESSES).
struct BoxRecord {
    std::string file;
    uint32_t line = 0, ptx_line = 0;
    std::vector<CallSite> inlined;  // as in LineCount
    BulkKind kind = BulkKind::load;
    unsigned lane = 0;
    uint32_t shared = 0;                        // offset of the box; of a prefetch 0
    unsigned swizzle = 0;                       // bytes of a swizzled row, 0: none
    unsigned element = 0;                       // bytes
    std::vector<int32_t> coordinates;           // the inner one first
    std::vector<uint32_t> counts;               // elements that are copied, by dimension
    std::vector<std::optional<uint64_t>> rows;  // global address of each row's first element; none: outside
    uint64_t sectors = 0;
};

// What came before what, where a sum over the launch does not tell.
struct OrderCount {
    uint64_t tensor_during_copies = 0;  // tensor instructions while a cp.async of their own warp is in flight
    uint64_t ldmatrix_in_a_row = 0;     // the most that a warp executed without a tensor instruction between them
    void add(const OrderCount &other) {
        tensor_during_copies += other.tensor_during_copies;
        ldmatrix_in_a_row = std::max(ldmatrix_in_a_row, other.ldmatrix_in_a_row);
    }
};

struct LaunchReport {
    std::string kernel;  // demangled
    uint32_t grid[3] = {}, block[3] = {};
    uint32_t shared_bytes = 0;
    uint64_t instructions = 0;  // PTX warp instructions
    std::array<uint64_t, size_t(OpClass::count_)> by_class{};
    std::map<std::string, SharedCount> shared;  // "load" "store" "ldmatrix" "cp_async" (and "atomic", "stmatrix")
    std::map<std::string, GlobalCount> global;  // "load" "store" (and "atomic")
    std::map<std::string, BulkCount> bulk;      // "load" "store" "reduce" "prefetch" "peer", those that there were
    std::map<std::string, TensorCount> tensor_copies;  // the same
    std::map<std::string, WgmmaCount> wgmma;           // by shape and types: "m64n128k16.f32.bf16.bf16"
    uint64_t mbarrier_waits = 0, mbarrier_waited = 0;
    uint64_t barriers = 0, divergent_branches = 0;
    OrderCount order;
    uint64_t first_block = 0, last_block = 0;  // warp instructions of the grid's first and last block, joins included
    std::vector<HazardRecord> hazards, notes;
    std::vector<LineCount> lines;
    std::vector<AccessRecord> accesses;  // of one warp of one block: accessed_warp, accessed_block
    std::vector<BoxRecord> boxes;        // the same
    uint32_t accessed_block[3] = {}, accessed_warp = 0;
    std::vector<TracedBlock> traced;  // the first blocks (WARPSIM_TRACE)
    std::vector<TracedOp> traced_ops;
    std::string error;   // empty: the launch ran to its end
    double seconds = 0;  // host time; not part of the JSON
};

const char *bulk_name(BulkKind);  // "load"
// Sums per-op statistics of all workers by class and by line.
void summarize(const Program &, const std::vector<OpStats> &totals, LaunchReport &);

}  // namespace warpsim
