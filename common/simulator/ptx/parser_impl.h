// The recursive-descent parser behind ptx::parse. Each .cpp named parser*.cpp holds the members for one part of the
// grammar.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ptx/lexer.h"
#include "ptx/parser.h"
#include "ptx/scope.h"

namespace warpsim::ptx {

class Parser {
  public:
    explicit Parser(std::string_view text);
    Module run();

  private:
    // A value known while parsing: immediates, initialisers, array sizes.
    struct Constant {
        bool is_real = false;
        int64_t integer = 0;
        uint64_t real_bits = 0;
        Type real_type = Type::none;
    };
    struct Declaration {
        Variable variable;  // its name is still empty
        std::string_view name;
        std::vector<uint64_t> dimensions;
        uint64_t element_bytes = 0;
    };
    // A name as the AST has it: source names that clash are made unique.
    struct LocalName {
        std::string name;
        Type type = Type::none;
    };
    // `.reg .b32 %r<100>`: registers come into being when they are first named.
    struct RegisterRange {
        Type type;
        int vector;
        uint64_t count;
        std::unordered_map<uint32_t, uint32_t> used;  // number -> index in Function::registers
    };
    struct LabelReference {
        std::string_view name;
        uint32_t line;
        bool in_targets;  // of Label `owner`, else in instruction `owner`
        uint32_t owner, position;
    };
    struct LabelScope {
        std::unordered_map<std::string_view, uint32_t> labels;
        std::vector<LabelReference> pending;
    };
    // .reg parameters and return values (functions written by hand) become .param ones with moves around them.
    struct RegisterParameter {
        uint32_t reg;
        std::string variable;
        Type type;
    };

    // Tokens (parser.cpp)
    void advance();
    [[noreturn]] void fail(const std::string &message) const { throw ParseError(current_.line, message); }
    [[noreturn]] void unexpected(const std::string &wanted) const;
    bool at(std::string_view punctuation) const {
        return current_.kind == TokenKind::punctuation && current_.text == punctuation;
    }
    bool at_dotted(std::string_view word) const { return current_.kind == TokenKind::dotted && current_.text == word; }
    bool accept(std::string_view punctuation);
    bool accept_dotted(std::string_view word);
    void expect(std::string_view punctuation);
    std::string_view identifier(const char *what);
    uint64_t unsigned_constant(const char *what);

    // Module level (parser.cpp)
    void module_item();
    void function(bool is_entry);
    void parameters(std::vector<Variable> &, std::vector<RegisterParameter> &);
    void keep_function(Function &&);
    void apply_aliases();

    // Directives (parser_directives.cpp)
    void version();
    void target();
    void file();
    void loc();
    void section();
    void alias();
    void attribute();
    bool function_directive(Function &);
    void branch_targets(uint32_t label);
    void call_prototype(std::string_view name);

    // Declarations (parser_variables.cpp)
    void register_declaration();
    // What follows the state space: ".align 8 .b8 name[4][2]". The name may be missing or `_` for parameters.
    Declaration specifiers(Space);
    Declaration declarator(const Declaration &specified);
    void module_variables(Space, bool external);
    void local_variables(Space);
    void initializer(Declaration &);
    void initial_element(Variable &, uint64_t offset);
    void store_constant(Variable &, uint64_t offset, const Constant &);
    void name_local(Variable &, std::string_view source_name);
    void keep_module_variable(Variable &&);
    std::string unique_name(std::string_view name);

    // Statements (parser_body.cpp)
    void body();
    void statement();
    void open_scope();
    void close_scope();
    uint32_t define_label(std::string_view name, uint32_t line);
    Instruction instruction_head();
    void instruction();
    void call(Instruction &&);
    void store_register_returns(const Instruction &at);

    // Operands (parser_operands.cpp)
    Operand operand();
    Operand operand_atom();
    Operand named_operand();
    Operand address_operand();
    Operand vector_operand();
    bool find_register(std::string_view name, Operand &);
    uint32_t add_register(std::string name, Type, int vector);
    LocalName resolve(std::string_view name) const;

    // Constant expressions (parser_constants.cpp)
    Constant constant();
    Constant constant_unary(unsigned depth);
    Constant constant_binary(int min_precedence, unsigned depth);

    Lexer lexer_;
    Token current_, ahead_;
    size_t text_bytes_;
    Module module_;
    std::unordered_map<std::string, size_t> functions_, variables_;  // by name: index in module_
    std::unordered_map<std::string, std::string> aliases_;

    // The function being parsed.
    Function *function_ = nullptr;
    Scopes registers_, ranges_, locals_, prototypes_;
    std::vector<RegisterRange> register_ranges_;
    std::vector<LocalName> local_names_;  // what locals_ and prototypes_ index
    std::unordered_set<std::string> used_names_;
    std::unordered_map<std::string, uint32_t> name_counts_;  // how often a name has been made unique
    std::vector<LabelScope> label_scopes_;
    std::vector<RegisterParameter> register_parameters_, register_returns_;
    uint32_t used_bytes_ = ~0u;  // of the next instruction, as a pragma says
    SourceLocation source_;
    using Position = std::array<uint64_t, 3>;  // file, line, column
    struct Inlining {
        Position caller{};
        std::string_view label;  // of the function's name
    };
    std::map<Position, Inlining> inlined_at_;  // by .loc, the newest ones: where the code was inlined
    std::map<std::tuple<uint32_t, uint32_t, uint32_t, std::string_view>, uint32_t> call_numbers_;
    size_t named_calls_ = 0;
    static SourceLocation location(const Position &, uint32_t calls);
    uint32_t call_number(const Inlining &, uint32_t outer);
    void name_calls(const std::unordered_map<std::string_view, std::string> &names);
};

}  // namespace warpsim::ptx
