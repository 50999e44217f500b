// The parser's parts: types and values (parser_values.cpp), instructions (parser_instructions.cpp), the rest of a
// module (parser.cpp).
#pragma once

#include <map>

#include "ir.h"
#include "lexer.h"

namespace compiler {

class Parser {
  public:
    Parser(std::string_view text, ir::Module &module) : lexer_(text), module_(module) { lexer_.advance(); }
    void parse_module();

  private:
    // ---- words ----
    bool is(std::string_view sign) const { return lexer_.token == Token::sign && lexer_.text == sign; }
    bool is_word(std::string_view word) const { return lexer_.token == Token::word && lexer_.text == word; }
    bool take(std::string_view sign);
    bool take_word(std::string_view word);
    void expect(std::string_view sign);
    std::string next();  // the token's text; goes on
    uint64_t whole_number();
    uint64_t in_parentheses();  // (7)
    void skip_parentheses();    // with all that is in them
    [[noreturn]] void fail(const std::string &what) const { lexer_.fail(what); }

    // ---- types and values ----
    bool at_type() const;
    const ir::Type *type();
    const ir::Type *make(ir::Type);
    const ir::Type *structure(bool packed);
    ir::Value *value(const ir::Type *);
    ir::Value *typed_value() {
        const ir::Type *of = type();
        return value(of);
    }
    ir::Value *make_value(ir::ValueKind, const ir::Type *);
    ir::Value *local(const std::string &name, const ir::Type *);
    ir::Value *global(const std::string &name, const ir::Type *);
    ir::Value *aggregate(const ir::Type *, std::string_view closing);
    ir::Value *expression(const ir::Type *);
    ir::Value *assembly();
    bool at_value_word() const;
    // Attributes of a parameter, an argument or a result: those that matter are kept.
    ir::Parameter attributes();

    // ---- functions ----
    void function(bool declaration);
    void parameters(ir::Function &);
    void body(ir::Function &);
    ir::Block *block(const std::string &name);
    void instruction(ir::Block &);
    void operands_of(ir::Instruction &);
    void flags(ir::Instruction &);
    void access(ir::Instruction &);  // volatile, align N, syncscope, ordering
    void memory(ir::Instruction &);
    void call(ir::Instruction &);
    void phi(ir::Instruction &);
    void branch(ir::Instruction &);
    void switch_between(ir::Instruction &);
    void two(ir::Instruction &);  // type a, b
    void attachments(ir::Instruction &);
    void element_of(ir::Instruction &);
    ir::Block *label();

    // ---- the rest ----
    void global_variable();
    void type_definition();
    void attribute_group();
    void metadata_node();

    Lexer lexer_;
    ir::Module &module_;
    ir::Function *function_ = nullptr;
    std::map<std::string, ir::Value *, std::less<>> locals_, globals_;
    std::map<std::string, ir::Block *, std::less<>> blocks_;
    std::deque<ir::Block> ahead_;  // named before they come
    std::map<std::string, ir::Type *, std::less<>> named_types_;
    std::map<std::string, const ir::Type *, std::less<>> simple_types_;
};

}  // namespace compiler
