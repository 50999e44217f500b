// LLVM IR in memory: what parser.h reads and lowering.h turns into PTX.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace compiler::ir {

enum class Kind { nothing, integer, half, bfloat, single, real, pointer, vector, array, structure, label, metadata };

struct Type {
    Kind kind = Kind::nothing;
    unsigned bits = 0;      // of a number or a pointer
    unsigned space = 0;     // of a pointer
    uint64_t count = 0;     // of a vector or an array
    bool packed = false;    // of a structure
    std::string name = {};  // of a structure that has one
    std::vector<const Type *> elements = {};

    bool is_float() const { return kind >= Kind::half && kind <= Kind::real; }
    bool is_aggregate() const { return kind >= Kind::vector && kind <= Kind::structure; }
    const Type *element(uint64_t index) const { return kind == Kind::structure ? elements.at(index) : elements[0]; }
    uint64_t elements_count() const { return kind == Kind::structure ? elements.size() : count; }
};

uint64_t size_of(const Type *);       // with its padding, as arrays hold it
uint64_t alignment_of(const Type *);  // as the data layout of nvptx64 has it
uint64_t offset_of(const Type *, uint64_t element);
std::string to_string(const Type *);

// The scalars that a value consists of, in order, and where in memory each lies.
struct Leaf {
    const Type *type;
    uint64_t offset;
};
std::vector<Leaf> leaves_of(const Type *);
// Of an element: the number of its first leaf within the whole's.
size_t first_leaf(const Type *, uint64_t element);

enum class ValueKind {
    local,       // an argument or an instruction's result
    number,      // `bits`
    zero,        // of any type
    undefined,   // undef, poison
    aggregate,   // `operands`
    bytes,       // `text`
    global,      // a variable
    function,    // also one that is declared alone
    expression,  // `text` is the opcode
    assembly,    // `text`, `constraints`
    metadata,    // `bits` is its number
};

struct Value {
    ValueKind kind = ValueKind::local;
    const Type *type = nullptr;
    std::string text;  // a name, without % or @; see above
    uint64_t bits = 0;
    std::vector<Value *> operands;
    const Type *source_type = nullptr;  // of a getelementptr
    std::string constraints;
    unsigned index = 0;  // of a local: its place among its function's
};

using Attributes = std::map<std::string, std::string, std::less<>>;

struct Block;

struct Instruction {
    std::string opcode;
    std::string detail;     // predicate of a comparison, operation of atomicrmw, ordering of a cmpxchg that swaps
    std::string ordering;   // of an atomic access
    std::string syncscope;  // of an atomic access
    Value *result = nullptr;
    const Type *type = nullptr;         // of the result, or what is loaded, stored or allocated
    const Type *source_type = nullptr;  // of a getelementptr
    std::vector<Value *> operands;
    std::vector<Block *> blocks;      // where it branches to; where a phi's operands come from
    std::vector<uint64_t> indices;    // of extractvalue, insertvalue; of a call: each argument's alignment
    std::vector<const Type *> byval;  // of a call: by argument, null where it is an ordinary one
    uint64_t alignment = 0;
    bool is_volatile = false, is_nontemporal = false, is_atomic = false;
    bool no_unsigned_wrap = false, contract = false;
    int debug = -1;  // the number of its !DILocation
};

struct Block {
    std::string name;
    unsigned index = 0;
    std::deque<Instruction> instructions;
};

struct Parameter {
    Value *value = nullptr;
    const Type *byval = nullptr;
    uint64_t alignment = 0;
    bool readonly = false, grid_constant = false;
};

struct Function {
    Value *value = nullptr;
    std::string name;
    bool is_kernel = false, is_declaration = false, is_variadic = false;
    const Type *returns = nullptr;
    std::vector<Parameter> parameters;
    std::deque<Block> blocks;
    Attributes attributes;
    std::string attribute_group;  // "#0"
    unsigned locals = 0;
    int debug = -1;  // its !DISubprogram
};

struct Global {
    Value *value = nullptr;
    std::string name;
    const Type *type = nullptr;
    unsigned space = 0;
    Value *initialiser = nullptr;  // null: external
    bool is_constant = false, is_external = false;
    uint64_t alignment = 0;
};

// A node of metadata: `kind` is "DILocation" and the like, or "" of a plain tuple.
struct Metadata {
    std::string kind;
    std::map<std::string, std::string, std::less<>> fields;  // as they stand, strings without quotes
};

struct Module {
    std::deque<Type> types;
    std::deque<Value> values;
    std::deque<Function> functions;
    std::deque<Global> globals;
    std::map<std::string, Attributes, std::less<>> attribute_groups;  // by "#0"
    std::unordered_map<int, Metadata> metadata;
    std::unordered_map<const Value *, Function *> function_of;
    std::unordered_map<const Value *, Global *> global_of;
};

}  // namespace compiler::ir
