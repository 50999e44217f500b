// The parts of lowering: what all use and control flow (lowering.cpp), arithmetic, conversions, memory, calls, inline
// assembly, intrinsic functions.
#pragma once

#include <functional>
#include <optional>

#include "ir.h"
#include "lowering.h"

namespace compiler {

enum Space : unsigned { generic = 0, global = 1, shared = 3, constant = 4, local = 5, parameter = 101 };

// A place in memory: a variable or a symbol, and an offset.
struct Address {
    unsigned space = generic;
    std::string base;
    int64_t offset = 0;
    bool is_symbol = false;
};

class Lowering {
  public:
    Lowering(const ir::Module &module, const ir::Function &function, const Symbols &symbols,
             std::vector<const ir::Function *> &called)
        : module_(module), function_(function), symbols_(symbols), called_(called) {}
    machine::Function run();

  private:
    using Texts = std::vector<std::string>;

    // ---- lowering.cpp: variables and operations ----
    [[noreturn]] void refuse(const std::string &what) const;
    uint32_t variable(machine::Register);
    static std::string use(uint32_t variable);
    machine::Operation &emit(std::string text, machine::Effect = machine::Effect::none);
    // A new variable that the instruction writes first: "add.s32", "a, b".
    std::string emit_to(machine::Register, const std::string &instruction, const std::string &operands);
    machine::Register register_of(const ir::Type *) const;
    std::string literal(const ir::Type *, uint64_t bits) const;
    // The scalars of a value as operands. Constants of halves and predicates are in variables.
    Texts operands(const ir::Value *);
    std::string operand(const ir::Value *);
    void constant_leaves(const ir::Value *, Texts &);
    void define(const ir::Instruction &, Texts);
    void copy(const std::string &definition, machine::Register, const std::string &from, bool tied = false);

    // ---- lowering.cpp: control ----
    void order_blocks();
    void find_shared_pointers();
    std::optional<unsigned> space_of(const ir::Value *) const;
    void prologue();
    void lower_block(const ir::Block &);
    void begin_phi(const ir::Instruction &);
    void end_phis();
    void terminator(const ir::Instruction &);
    void instruction(const ir::Instruction &);
    void give_back(const ir::Instruction &);

    // ---- lowering_arithmetic.cpp ----
    std::string binary(const ir::Instruction &, const ir::Type *, std::string a, std::string b);
    std::string float_binary(const ir::Instruction &, const ir::Type *, const std::string &a, const std::string &b);
    std::string on_predicates(const std::string &opcode, const std::string &a, const std::string &b);
    std::string compare_integers(const std::string &how, const ir::Type *, std::string a, std::string b);
    std::string compare_floats(const std::string &how, const ir::Type *, const std::string &a, const std::string &b);
    std::string select(const ir::Type *, const std::string &condition, const std::string &a, const std::string &b);
    std::string negated(const ir::Type *, const std::string &a);
    std::string with_sign(const ir::Type *, const std::string &);  // a narrow integer, sign-extended to its register
    std::string narrowed(const ir::Type *, const std::string &);   // the bits above those of the type cleared
    std::string float_type(const ir::Type *) const;                // f32, ftz.f32, ...
    void elementwise(const ir::Instruction &);

    // ---- lowering_conversions.cpp ----
    std::string convert(const std::string &opcode, const ir::Type *from, const ir::Type *to, const std::string &);
    std::string reinterpret(const ir::Type *from, const ir::Type *to, const std::string &);
    Texts bitcast(const ir::Type *from, const ir::Type *to, const Texts &);
    std::string number_of(const std::string &predicate);  // 1 or 0, 32 bits
    std::string predicate_of(const std::string &number);  // the lowest bit
    std::string integer_width(const std::string &, unsigned from, unsigned to, bool is_signed);
    void vector_element(const ir::Instruction &);

    // ---- lowering_memory.cpp ----
    Address address(const ir::Value *);
    std::string pointer(const Address &, unsigned space);  // as a value of that space
    std::string place(const Address &, int64_t more = 0) const;
    void element_address(const ir::Instruction &);
    Address element_address(const ir::Type *, const std::vector<ir::Value *> &);
    void load(const ir::Instruction &);
    void store(const ir::Instruction &);
    std::string load_leaf(const std::string &how, const Address &, const ir::Leaf &, uint64_t alignment,
                          bool mergeable);
    void store_leaf(const std::string &how, const Address &, const ir::Leaf &, std::string value, uint64_t alignment,
                    bool mergeable);
    std::string access_words(const ir::Instruction &);
    std::string scope(const ir::Instruction &) const;
    void atomic(const ir::Instruction &);
    void compare_and_swap(const ir::Instruction &);
    void fence(const ir::Instruction &);
    void copy_bytes(const Address &to, const Address &from, uint64_t bytes, uint64_t alignment,
                    bool overlapping = false);
    void copy_memory(const ir::Instruction &);
    void set_memory(const ir::Instruction &);
    void allocate(const ir::Instruction &);
    Address local_bytes(uint64_t bytes, uint64_t alignment);

    // ---- lowering_calls.cpp ----
    void call(const ir::Instruction &);
    void call_function(const ir::Instruction &, const ir::Function &);
    void assembly(const ir::Instruction &);

    // ---- intrinsics.cpp ----
    void intrinsic(const ir::Instruction &, const std::string &name);
    bool simple_intrinsic(const ir::Instruction &, const std::string &name);
    bool typed_intrinsic(const ir::Instruction &, const std::string &name);
    bool bits_intrinsic(const ir::Instruction &, const std::string &base);
    std::string on_bits(const std::string &base, const ir::Type *, const Texts &);
    std::string funnel_shift(bool left, const ir::Type *, const Texts &);

    const ir::Module &module_;
    const ir::Function &function_;
    const Symbols &symbols_;
    std::vector<const ir::Function *> &called_;
    machine::Function result_;
    std::vector<machine::Operation> *into_ = nullptr;
    int debug_ = -1;
    bool flushes_ = false;  // subnormal numbers of 32 bits are 0

    std::vector<Texts> texts_;                           // by local
    std::vector<std::optional<Address>> places_;         // by local: a pointer that is a place known
    std::vector<char> is_shared_;                        // by local: a generic pointer that is kept as a shared address
    std::vector<unsigned> uses_;                         // by local
    std::vector<const ir::Instruction *> maker_;         // by local
    std::vector<const ir::Block *> order_;               // reverse post-order
    std::vector<int> position_;                          // of a block of the IR among the result's; -1: never reached
    std::vector<std::vector<machine::Operation>> ends_;  // by block of the result: copies for phis, then the terminator
    struct Phi {
        const ir::Instruction *instruction;
        std::vector<uint32_t> arrivals;  // by leaf: what the blocks before write
    };
    std::vector<Phi> phis_;
};

}  // namespace compiler
