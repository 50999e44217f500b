// Random kernels without races: a tree of statements that prints itself as PTX, and what it computes on the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz.h"

namespace fuzz {

inline constexpr unsigned kVariables = 8, kWide = 2;         // of 32 and of 64 bits, for each thread
inline constexpr unsigned kInputs = kVariables, kBins = 16;  // words
inline constexpr unsigned kRow = 32;                         // bytes of global and of local memory of each thread

struct Operand {
    bool immediate = false;
    uint32_t value = 0;  // or a variable's number
};

enum class Do : uint8_t {
    compute,     // a = operation(x, y, z)
    widen,       // wide a = operation(x, y, wide b)
    narrow,      // a = low word ^ high word of wide b
    select,      // a = x `compare` y ? z : a
    branch,      // if (x `compare` y) body else other
    loop,        // `count` times, or (per lane) a & count times: body
    row_store,   // row[a & ...] = x, `count` bytes; in local or global memory
    row_load,    // a = row[x & ...], `count` bytes
    exchange,    // a = what another thread of the block had in x, through shared memory
    warp_share,  // the same within the warp, between bar.warp.sync
    bins,        // a = one of 16 sums over the block, by red.shared; flag: added to the global bins by a bulk reduction
    global_bins,  // global bins[x & 15] += y
    shuffle,      // a = x of another lane, or y where there is none
    vote,         // a = ballot, all, any, or redux of x
    leader,       // if (x `compare` y): a = z of the first lane that is here, b = how many there are
    barrier,      // bar.sync, or a = how many threads of the block have x `compare` y
    call,         // a = f(x, y)
    bulk,         // a = an input of another thread of the block, by a bulk copy; flag: all arrive at its mbarrier
    peer,         // the same of a thread of the cluster's other block, from its shared memory
    leave,        // if (x `compare` y) store all and exit
};

struct Statement {
    Do what{};
    unsigned a = 0, b = 0;
    unsigned operation = 0, compare = 0, kind = 0, count = 0;
    bool flag = false;
    Operand x, y, z;
    std::vector<Statement> body, other;
};

struct Kernel {
    unsigned grid = 1, block = 32, cluster = 1;  // cluster: 1, or 2 blocks
    std::vector<Statement> functions[2];  // straight-line, on variables 0 (x) and 1 (y); the result is variable 0
    std::vector<Statement> body;
};

struct Memory {
    std::vector<uint32_t> inputs;  // kInputs for each thread of the grid
    std::vector<uint32_t> bins;    // kBins
    std::vector<uint8_t> rows;     // kRow for each thread
    std::vector<uint32_t> out;     // kVariables for each thread
};

Kernel make_kernel(uint64_t seed);
// .entry k(inputs, bins, rows, out)
std::string ptx_of(const Kernel &);
// What a GPU would leave in memory, computed thread by thread.
void run_on_host(const Kernel &, Memory &);

struct Operation {
    const char *ptx;  // "add.s32"
    unsigned sources;
    bool is_float;
    uint32_t (*compute)(uint32_t, uint32_t, uint32_t);
    bool divides = false;  // by y | 1
};
struct WideOperation {
    const char *ptx;
    unsigned narrow, wide;  // sources of 32 bits, then of 64
    uint64_t (*compute)(uint32_t, uint32_t, uint64_t);
};
struct Comparison {
    const char *ptx;
    bool is_float;
    bool (*holds)(uint32_t, uint32_t);
};
extern const std::vector<Operation> kOperations;
extern const std::vector<WideOperation> kWideOperations;
extern const std::vector<Comparison> kComparisons;

}  // namespace fuzz
