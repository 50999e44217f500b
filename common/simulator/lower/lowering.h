// What an instruction family needs to turn one PTX instruction into ops. The family's rows say which function lowers
// what; the core owns registers, constants, labels and layout.
#pragma once

#include <string>
#include <vector>

#include "lower/module.h"

namespace warpsim {

struct InstructionRow;

class Lowering {
  public:
    virtual ~Lowering() = default;

    // Slot that holds `operand` in lanes of `type`'s width: a register's own slot where the widths agree; an immediate
    // or symbol's address as a constant slot; a special register's slot. Where a register is wider than
    // the type (ld, st, cvt may be so used) its low bytes are copied out first; a narrower one is an error.
    virtual uint32_t source(const ptx::Operand &, ptx::Type) = 0;
    // Slot of a destination register; `_` gets a scratch slot of `type`.
    virtual uint32_t destination(const ptx::Operand &, ptx::Type) = 0;
    // Bytes of the operand's declared register type; 0 if it is no register.
    virtual unsigned register_bytes(const ptx::Operand &) const = 0;
    // A fresh temporary of `type`, live until the end of this instruction's ops.
    virtual uint32_t scratch(ptx::Type) = 0;
    // A constant slot: `bits` broadcast to 32 lanes of `type`'s width.
    virtual uint32_t constant(uint64_t bits, ptx::Type) = 0;

    // Appends an op with the instruction's guard, location and text. The reference holds until the next emit.
    virtual Op &emit(const ptx::Instruction &, Handler, OpClass) = 0;
    // The same with the class and the flow of the instruction's row, and its handler unless another is given.
    virtual Op &emit_row(const ptx::Instruction &, Handler = nullptr) = 0;
    // Stores slots in the operand list, returns the first index (for Op::list).
    virtual uint32_t list(const std::vector<uint32_t> &slots) = 0;

    // A symbol's address: .shared and .local variables as offsets in their space, .global/.const as device addresses,
    // kernel .param as offset into the parameter block, functions as function handles.
    struct Symbol {
        ptx::Space space;
        uint64_t address;
        uint64_t bytes;
        bool found;
        bool kernel_parameter;
    };
    virtual Symbol symbol(const std::string &name) = 0;
    // A .local variable, and a .param variable other than the kernel's own parameters (those of device functions, their
    // return values, call-site ones), lies in the thread's local memory at a place that depends on the frame: address()
    // then says space_of_symbol local, and its `slot` holds the frame's offset (uint32_t lanes, kNoSlot in the kernel's
    // own frame). So ld.param/st.param of anything with kernel_parameter false is an access to local memory.
    // kernel_parameter is also true for a register base in the kernel itself, where ld.param [%rd1] can only mean one
    // of its own. An address operand split up: `slot` (kNoSlot: none) holds a register base in lanes of slot_bytes (4
    // or 8), plus offset.
    struct Address {
        uint32_t slot;
        unsigned slot_bytes;
        int64_t offset;
        ptx::Space space_of_symbol;
        bool kernel_parameter;
    };
    virtual Address address(const ptx::Operand &) = 0;
    // For Op::target of an op that names shared memory: one more than the index into Program::shared_variables, of the
    // variable that the address leads into by the way it is computed; 0: not known.
    virtual uint32_t shared_variable(const ptx::Operand &address) = 0;

    // Is the instruction under way in a loop that only waits: one without a store, an atomic operation or a barrier?
    virtual bool in_waiting_loop() const = 0;

    // Does any instruction read the register? A selp does if its own result is read.
    virtual bool is_read(const ptx::Operand &) = 0;

    virtual Program &program() = 0;
    [[noreturn]] virtual void unsupported(const ptx::Instruction &, const std::string &why = "") = 0;
};

using LowerFunction = void (*)(Lowering &, const ptx::Instruction &);
void lower_plain(Lowering &, const ptx::Instruction &);  // the row's handler, class and flow; no operand matters

// An access that may lead to another block's shared memory, in programs that have mapa.
bool may_be_remote(Lowering &, const ptx::Instruction &, bool generic);
// Its op, just emitted: exec_remote runs it. scratch: a slot of 64-bit lanes, asked for before the op was emitted.
void make_remote(Lowering &, Op &, uint32_t scratch, bool generic);
// Of a copy's op: what it does in the block that it names, with its address in slot `to` and another list and extra.
void add_remote_op(Lowering &, Op &, Handler, uint32_t to, uint32_t list, uint32_t extra);

// {a, b, c, d}, or a register alone.
inline std::vector<ptx::Operand> registers_of(const ptx::Operand &operand) {
    return operand.kind == ptx::Operand::Kind::vector ? operand.elements : std::vector<ptx::Operand>{operand};
}

inline void expect_count(Lowering &l, const ptx::Instruction &in, const char *what, size_t have, size_t want) {
    if (have != want)
        l.unsupported(in,
                      std::string(what) + " has " + std::to_string(have) + " registers, not " + std::to_string(want));
}

}  // namespace warpsim
