// The PTX module as the parser leaves it: names resolved, scopes flattened, nothing interpreted yet.
// Names follow the PTX ISA manual.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace warpsim::ptx {

enum class Space : uint8_t { generic, reg, sreg, const_, global, local, param, shared };

struct Operand {
    enum class Kind : uint8_t {
        reg,      // index: into Function::registers
        special,  // name: "%tid.x", "%laneid", "%clusterid.x", ... (also WARP_SZ)
        integer,  // integer
        real,     // real_bits; type says f32 (0f...) or f64 (0d... and decimal literals)
        symbol,   // name of a variable or function, plus offset: an address as a value, a callee, ...
        address,  // [base + offset]: elements[0] is the base (reg, symbol or integer)
        vector,   // {a, b, c, d}: elements; for tensor addresses [map, {c0, c1}] see address below
        label,    // index: into Function::labels
        sink,     // "_"
    };
    Kind kind = Kind::sink;
    Type type = Type::none;  // for reg: the declared type; for real: f32 or f64
    bool negated = false;    // !%p
    bool minus = false;      // -%r, which no instruction takes
    uint32_t index = 0;
    int64_t integer = 0;
    uint64_t real_bits = 0;
    int64_t offset = 0;             // symbol and address
    std::string name;               // symbol, special
    std::vector<Operand> elements;  // vector; address: [0] base, [1..] further parts ([map, {x, y}])
    std::string selector;           // of the video instructions: "b3210", "h10", "b0"; [a].unified
    int component = -1;             // %v.x etc. of a vector register: 0..3
    // dst|pred pairs ("shfl.sync.down.b32 %r1|%p1, ..."): the second destination is elements[0], of a vector
    // ("tex.2d.v4.f32.f32 {...}|%p1, ...") the last of the elements
    bool has_pair = false;
};

struct Instruction {
    std::string opcode;                  // base: "ld", "mma", "cp", "barrier"
    std::vector<std::string> modifiers;  // in order, without dots: {"global", "v4", "u32"}; "L1::no_allocate" whole
    std::vector<Operand> operands;       // for call: see Call below
    int guard = -1;                      // register index of the guard predicate, -1: none
    bool guard_negated = false;
    uint32_t ptx_line = 0;  // 1-based, in the PTX text
    // Of a load, by byte of what a lane reads: those that anybody uses (.pragma "used_bytes_mask n" before it).
    uint32_t used_bytes = ~0u;
    SourceLocation source;
    SourceLocation nearest;  // where the source has no line: that of what stands beside it, for messages
    bool has(std::string_view modifier) const;
    std::string text() const;  // "ld.global.v4.u32": for messages
};
// call: operands = {return vector (maybe empty), callee (symbol or reg), argument vector (maybe empty),
//                   prototype symbol or .calltargets label (optional)}. Missing vectors are present and empty.

struct Register {
    std::string name;
    Type type = Type::none;
    int vector = 1;  // .v2/.v4 registers
};

struct Label {
    std::string name;
    uint32_t position = 0;          // index of the instruction that it stands before
    std::vector<uint32_t> targets;  // .branchtargets: label indices (for brx.idx); else empty
};

// A variable: module scope (.global, .const, .shared) or function scope (.local, .shared, .param).
struct Variable {
    std::string name;  // unique: scopes are mangled into it if they clash
    Space space = Space::global;
    Type type = Type::b8;
    uint32_t align = 1;
    uint64_t bytes = 0;  // 0 for `.extern .shared x[]`
    bool external = false;
    bool managed = false;  // .attribute(.managed): the host reads and writes it too
    struct Relocation {
        uint64_t offset;
        std::string symbol;
        int64_t addend;
        bool generic;
        unsigned mask_byte = ~0u;
    };
    std::vector<uint8_t> initial;  // empty: zero
    std::vector<Relocation> relocations;
};

struct Function {
    std::string name;
    bool is_entry = false;
    bool is_declaration = false;       // `.extern .func vprintf`
    std::vector<Variable> parameters;  // space param, in order; offsets follow from align
    std::vector<Variable> returns;
    std::vector<Register> registers;
    std::vector<Variable> variables;  // .local, .shared and call-site .param
    std::vector<Label> labels;
    std::vector<Instruction> body;
    std::map<std::string, std::vector<uint32_t>> directives;  // "maxntid" -> {256,1,1}, "reqnctapercluster", ...
};

struct Module {
    unsigned version = 0;                   // 90 for .version 9.0
    bool debug = false;                     // compiled for a debugger: -G
    std::string target;                     // "sm_80", "sm_90a"
    std::map<uint32_t, std::string> files;  // .file index -> path
    std::vector<InlinedCall> calls;         // what SourceLocation::calls names
    std::vector<Variable> variables;
    std::vector<Function> functions;
};

}  // namespace warpsim::ptx
