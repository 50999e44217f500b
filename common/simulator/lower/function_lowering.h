// Lowers one PTX function: the Lowering that families see, and what control flow needs beyond it; and what must be
// known about a kernel as a whole before its functions are lowered.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/specials.h"
#include "lower/instruction_table.h"
#include "lower/layout.h"
#include "lower/lowering.h"
#include "lower/registers.h"
#include "lower/shared_pointers.h"
#include "lower/wgmma_flow.h"

namespace warpsim {

// Function addresses as programs see them: window | (index into Module::functions + 1) << 4.
inline constexpr uint64_t kFunctionWindow = 0x0400000000000000ull;
inline uint64_t function_handle(size_t index) {
    return kFunctionWindow | (uint64_t(index) + 1) << 4;
}

// What all functions of one program share while it is lowered.
struct ProgramContext {
    LoadedModule *module = nullptr;
    Program *program = nullptr;
    struct Shared {
        uint32_t offset;
        uint64_t bytes;
    };
    std::map<std::string, Shared> shared;               // .shared variables, of the module and of functions
    std::map<std::string, uint32_t> shared_numbers;     // the same -> index into Program::shared_variables
    std::map<std::string, size_t> definitions;          // function name -> index into Module::functions
    std::map<std::string, uint32_t> program_functions;  // reachable ones -> index into Program::functions
    // "mma.sync.aligned (PTX line 91, kernel.cu:33)"
    std::string describe(const ptx::Instruction &) const;
};

class FunctionLowering : public Lowering {
  public:
    // index: into Program::functions.
    FunctionLowering(ProgramContext &, const ptx::Function &, uint32_t index);

    // Gives .local and .param variables their places in the frame; all functions first, since calls look at callees.
    void place_variables();
    // Appends the function's ops to the program. Throws Unsupported.
    void run();

    uint32_t source(const ptx::Operand &, ptx::Type) override;
    uint32_t destination(const ptx::Operand &, ptx::Type) override;
    unsigned register_bytes(const ptx::Operand &) const override;
    uint32_t scratch(ptx::Type) override;
    uint32_t constant(uint64_t bits, ptx::Type) override;
    Op &emit(const ptx::Instruction &, Handler, OpClass) override;
    Op &emit_row(const ptx::Instruction &, Handler) override;
    uint32_t list(const std::vector<uint32_t> &slots) override;
    Symbol symbol(const std::string &name) override;
    Address address(const ptx::Operand &) override;
    uint32_t shared_variable(const ptx::Operand &) override;
    bool in_waiting_loop() const override;
    bool is_read(const ptx::Operand &) override;
    Program &program() override { return *context_.program; }
    [[noreturn]] void unsupported(const ptx::Instruction &, const std::string &why) override;

    // For control flow only. A branch's target is the block at a label until run() turns it into an op index.
    ProgramContext &context() { return context_; }
    const ptx::Function &function() const { return function_; }
    uint32_t block_at(uint32_t label) const;
    // Offset in the frame's local memory of a .param or .local variable; false if there is none of this name.
    bool local_place(const std::string &name, uint32_t &offset, uint64_t &bytes) const;
    // A fresh place of the frame's local memory, for call arguments that are no variables.
    uint32_t local_temporary(uint32_t bytes);
    // The frame's offset in local memory: uint32_t lanes; kNoSlot in the kernel, whose frame lies at 0.
    uint32_t frame_base();
    // The register that says how far alloca has moved the stack: kStackTopBytes.
    uint32_t stack_top() { return special(Special::frame_base, kStackTopBytes); }

  private:
    uint32_t tail(uint32_t bytes);  // new room at the end of the frame
    uint32_t find_source(const ptx::Operand &, ptx::Type);
    uint32_t special(Special, unsigned bytes);
    uint32_t copy_low_bytes(uint32_t slot, unsigned from_bytes, unsigned to_bytes);
    uint32_t scratch_bytes(unsigned bytes);
    Op &append(Handler, OpClass, Flow, bool counted);
    // What an op of the core's own reads and writes.
    void set_flow(const Op &, DefinednessRule, std::initializer_list<OperandSlot> reads, OperandSlot write);
    void set_flows(size_t first_op, const ptx::Instruction &);  // of an instruction's ops, from what was noted
    void lower_instruction(const ptx::Instruction &);
    void note_wgmma_registers(const ptx::Instruction &);
    void finish_ops();
    const ptx::Operand &checked_register(const ptx::Operand &) const;
    Program::Function &record() { return context_.program->functions[index_]; }

    ProgramContext &context_;
    const ptx::Function &function_;
    uint32_t index_;
    bool is_kernel_;
    Layout layout_;
    Allocation allocation_;
    uint32_t current_block_ = 0;
    const ptx::Instruction *current_ = nullptr;
    std::string current_text_;
    const InstructionRow *row_ = nullptr;  // of current_
    WgmmaFlow wgmma_;
    SharedPointers shared_pointers_;
    std::vector<uint32_t> reads_;  // by register: instructions that read it, counted when somebody asks
    uint32_t first_op_ = 0;
    std::vector<uint32_t> block_start_;  // by block: op index
    std::vector<std::byte> image_;       // constants and room for scratch, behind the registers
    std::map<std::pair<uint64_t, unsigned>, uint32_t> constants_;  // {bits, bytes} -> slot
    std::map<std::pair<uint8_t, unsigned>, uint32_t> specials_;
    struct Pool {
        std::vector<uint32_t> slots;
        size_t used = 0;
    };
    std::map<uint32_t, Pool> scratch_;  // by slot bytes; all free again at the next instruction
    // What the instruction under way has asked for: sources, destinations, and temporaries among its ops.
    std::vector<OperandSlot> sources_, destinations_, temporaries_;
    struct Local {
        uint32_t offset;
        uint64_t bytes;
    };
    std::unordered_map<std::string, Local> locals_;
    uint32_t local_end_ = 0;
    std::unordered_map<std::string, std::pair<uint32_t, uint64_t>> kernel_parameters_;
};

// Fills the program's functions (names only, the kernel first), the context's function maps, shared memory, and the
// flags. `entry` is an index into Module::functions. Throws Unsupported.
void analyze_program(ProgramContext &, size_t entry);

// After lowering: stack_bytes and recursive.
void measure_stack(ProgramContext &);

// The Module::functions indices behind Program::functions.
std::vector<size_t> reachable_functions(const ProgramContext &);

}  // namespace warpsim
