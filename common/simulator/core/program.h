// A kernel lowered for execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dataflow.h"
#include "core/op.h"
#include "core/specials.h"

namespace warpsim {

// What the kernels of one module share while they run.
struct ModuleState {
    std::map<uint32_t, std::string> files;   // of .file directives: number -> path
    std::vector<ptx::InlinedCall> calls;     // what SourceLocation::calls names
    std::shared_ptr<class DeviceHeap> heap;  // of malloc in kernels, from its first launch on
};

// All ops of one kernel: the entry first, then every device function that it can reach, so that one index names an op.
struct Program {
    std::string name;  // mangled, as in the PTX
    ModuleState *module = nullptr;
    std::vector<Op> ops;
    std::vector<OpDebug> debug;          // same length as ops
    std::vector<uint32_t> operand_list;  // what Op::list points into
    std::vector<DataFlow> flows;         // same length as ops
    std::vector<Op> remote_ops;          // of ops that may lead to another block's shared memory: machine/cluster.h
    std::vector<OperandSlot> operands;   // what DataFlow::first points into
    std::vector<std::string> notes;      // what lowering found and execution may say: exec_wgmma_touch

    struct Function {
        std::string name;
        uint32_t entry = 0;                // op index
        uint32_t frame_bytes = 0;          // register slots of a frame, a multiple of 64
        uint32_t local_bytes = 0;          // .local variables of a frame, per thread
        std::vector<std::byte> constants;  // copied into every new frame, at constants_offset
        uint32_t constants_offset = 0;
        bool zero_frame = false;             // some register may be read before it is written
        std::vector<OperandSlot> unwritten;  // which ones
        struct Special {
            uint8_t which;
            uint8_t bytes;
            uint32_t slot;
        };  // slots of special registers: core/specials.h
        std::vector<Special> specials;
        struct Place {
            uint32_t offset, bytes;
        };  // in the frame's local memory
        std::vector<Place> parameters, returns;  // of device functions
    };
    std::vector<Function> functions;         // [0] is the kernel
    std::map<uint64_t, uint32_t> by_handle;  // function addresses, as programs see them -> index into functions
    uint64_t stack_bytes = 0;                // per thread: locals of the deepest chain of calls without recursion
    bool recursive = false;                  // recursion or calls through pointers: the chain has no fixed depth

    struct Parameter {
        uint32_t offset, bytes;
    };
    std::vector<Parameter> parameters;
    uint32_t parameter_bytes = 0;

    // Bytes at the start of shared memory that are the system's (%reserved_smem_offset_0 ...), in kernels that ask
    // where they are, else 0. No other figure here counts them.
    uint32_t reserved_shared = 0;
    uint32_t static_shared = 0;  // bytes; dynamic shared memory starts at the next multiple of its alignment
    uint32_t dynamic_shared_offset = 0;
    struct SharedVariable {
        std::string name;       // as the source has it
        uint32_t begin, bytes;  // 0 bytes: dynamic, to the end of what the launch gives
    };
    std::vector<SharedVariable> shared_variables;
    uint32_t max_threads = 1024;  // .maxntid / .reqntid product, else the device's
    uint32_t required_threads[3] = {0, 0, 0};
    uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster
    bool explicit_cluster = false;             // .explicitcluster
    uint32_t max_cluster_rank = 0;             // .maxclusterrank: blocks of a cluster at most, 0: no limit of its own
    bool uses_clusters = false;                // has instructions of clusters
    bool maps_addresses = false;               // mapa among them: generic addresses may lead to another block
    uint32_t registers = 0;                    // 32-bit registers live at once at most, an estimate from the PTX
    // 32-bit registers that each thread has at launch, where setmaxnreg moves them later: all that .maxntid and
    // .minnctapersm leave it.
    uint32_t registers_at_launch = 0;
    uint32_t local_bytes = 0;     // of the kernel's own frame
    unsigned shadow_granule = 4;  // bytes: the narrowest shared (or generic) access in the kernel, at most 4
    unsigned global_granule = 4;  // the same of global accesses
    // Blocks talk to each other (global atomics, fences, volatile or acquire loads, grid barriers), and not only by
    // sums whose order nobody sees: co-resident blocks then take turns in a deterministic order (scheduler/turns.h), so
    // that locks and flags make progress and sums repeat.
    bool communicates = false;
    bool updates_commute = false;  // they do not, and there are such sums: a host thread may hold them back
    // Why ptxas leaves setmaxnreg out, in its own words, and what helps; null: it does not.
    const char *registers_stay = nullptr, *registers_remedy = nullptr;
};

// The stack that alloca takes memory from: in a thread's local memory, behind the variables of the function's frame.
// A function with alloca has the special register frame_base in 64 bits, too, and there it moves: up by what alloca has
// taken, in each lane by itself, and back by stackrestore. All other functions have it in 32 bits alone.
inline constexpr unsigned kStackTopBytes = 8;
inline bool is_stack_top(const Program::Function::Special &special) {
    return Special(special.which) == Special::frame_base && special.bytes == kStackTopBytes;
}

}  // namespace warpsim
