// What a block knows of values that nobody wrote: where they came from, and where one mattered.
//
// A load of bytes that nobody has written is no mistake yet, nor is a register that nothing wrote. Their lanes become
// undefined (definedness/registers.h), instructions pass undefined bits on (definedness/rules.h), memory keeps them
// (hazard/undefined_bytes.h), and a report comes where one decides something or leaves the kernel.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/warp.h"

namespace warpsim {

// What an undefined value did.
enum class Use : uint8_t {
    branch,
    guard,    // decides whether an instruction with an effect is executed
    address,  // of memory
    lanes,    // decides which lanes a warp-synchronous instruction reads or waits for
    barrier,
    global_store,
    atomic,
    call,   // an argument of printf, assert, malloc, free
    input,  // of an instruction that writes no register
};

class Definedness {
  public:
    // Where an undefined value came from.
    enum class Source : uint8_t { variable, local, shared, lane };
    static constexpr uint32_t kNoOrigin = 0;  // a register that nothing wrote and no instruction has read yet

    // distrust_memory: what is loaded from global memory is undefined. All instructions then meet undefined values, as
    // tests want it.
    void start_block(bool distrust_memory);
    bool distrusts_memory() const { return distrust_memory_; }
    // Id of a read by a lane at op; address: of the bytes, in their space, or the number of the lane that is read.
    uint32_t origin(Source, Warp &, const Op &, unsigned lane, uint64_t address);
    // The undefined value of `lane` mattered at op. Reports it, or notes it where it may still turn out that the read
    // raced with a write.
    void matters(Warp &, const Op &, unsigned lane, uint32_t origin, Use);
    // The block is over, or another error is about to end it: reports what has waited. Call it while the block's Warps
    // still exist.
    void finish();

  private:
    struct Origin {
        Source source;
        Warp *warp;
        const Op *op;
        uint32_t lane;
        uint64_t address;
        const SharedShadow *shadow;  // shared: of that memory
    };
    struct Effect {
        Warp *warp;
        const Op *op;
        uint32_t lane;
        Origin origin;
        Use use;
    };
    static void report(const Effect &);

    bool distrust_memory_ = false;
    std::vector<Origin> origins_;  // id - 1
    std::unordered_map<uint64_t, std::vector<uint32_t>> known_;
    std::set<std::tuple<uint32_t, uint32_t, Use>> said_;  // op of the origin, op
    std::vector<Effect> waiting_;
};

}  // namespace warpsim
