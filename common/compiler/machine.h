// PTX before its registers have names: what lowering.h makes, and coalescing.h and printing.h work on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace compiler::machine {

enum class Register { predicate, b16, b32, b64, f32, f64 };

// In an operation's text a variable is a sign and a number, and ends with another sign.
constexpr char kUse = '\1', kDefinition = '\2', kEnd = '\3';

enum class Effect { none, load, store, other };  // on memory; `other`: any

// One that may become part of a wider one (merging.h).
struct Access {
    std::string place;  // instruction and space: "ld.shared"
    std::string base;   // a variable or a symbol
    int64_t offset = 0;
    unsigned bits = 0;       // of its one element
    uint64_t alignment = 0;  // known, in bytes
    std::string element;     // what is loaded or stored
};

struct Operation {
    std::string text;  // an instruction of PTX without its semicolon; assembly may be anything
    std::vector<uint32_t> defined, used;
    Effect effect = Effect::none;
    bool is_copy = false;      // of one variable to another of its kind
    bool is_tied = false;      // a copy to where assembly changes a register in place
    bool reads_late = false;   // assembly: what it defines must not lie where it reads
    bool is_assembly = false;  // ends by itself
    int debug = -1;
    Access access = {};  // bits: 0 where it is none
};

struct Block {
    std::string label;
    std::vector<Operation> operations;
    std::vector<uint32_t> successors;
};

struct Function {
    std::vector<Register> variables;  // by number
    std::vector<Block> blocks;        // the first is the entry
    uint64_t local_bytes = 0, local_alignment = 1;
    int debug = -1;  // its !DISubprogram
};

// The variables of a text, and which of them it defines, into the operation's lists.
Operation operation(std::string text);

}  // namespace compiler::machine
