#include <set>

#include "constants.h"
#include "parser_impl.h"

namespace compiler {

using ir::Kind, ir::Type, ir::Value, ir::ValueKind;

bool Parser::take(std::string_view sign) {
    if (!is(sign)) return false;
    lexer_.advance();
    return true;
}

bool Parser::take_word(std::string_view word) {
    if (!is_word(word)) return false;
    lexer_.advance();
    return true;
}

void Parser::expect(std::string_view sign) {
    if (!take(sign)) fail("'" + lexer_.text + "' where '" + std::string(sign) + "' should be");
}

std::string Parser::next() {
    std::string text = lexer_.text;
    lexer_.advance();
    return text;
}

uint64_t Parser::whole_number() {
    static const Type i64{.kind = Kind::integer, .bits = 64};
    const auto bits = lexer_.token == Token::number ? number_bits(lexer_.text, &i64) : std::nullopt;
    if (!bits) fail("'" + lexer_.text + "' is no whole number");
    lexer_.advance();
    return *bits;
}

uint64_t Parser::in_parentheses() {
    expect("(");
    const uint64_t number = whole_number();
    expect(")");
    return number;
}

void Parser::skip_parentheses() {
    int depth = 0;
    do {
        if (is("(")) ++depth;
        if (is(")")) --depth;
        if (lexer_.token == Token::end) fail("a parenthesis stays open");
        lexer_.advance();
    } while (depth > 0);
}

// ---- types ----

static bool is_integer_word(std::string_view word) {
    return word.size() > 1 && word[0] == 'i' && word.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool Parser::at_type() const {
    static const std::set<std::string_view> words = {"void",   "half", "bfloat", "float",
                                                     "double", "ptr",  "label",  "metadata"};
    if (lexer_.token == Token::local) return true;
    if (lexer_.token == Token::sign) return is("<") || is("[") || is("{");
    return lexer_.token == Token::word && (words.contains(lexer_.text) || is_integer_word(lexer_.text));
}

const Type *Parser::make(Type type) {
    if (type.is_aggregate() && !type.name.empty()) return &module_.types.emplace_back(std::move(type));
    const Type *&known = simple_types_[(type.packed ? "<" : "") + ir::to_string(&type)];
    if (!known) known = &module_.types.emplace_back(std::move(type));
    return known;
}

const Type *Parser::structure(bool packed) {
    Type found{.kind = Kind::structure, .packed = packed};
    while (!is("}")) {
        found.elements.push_back(type());
        if (!take(",")) break;
    }
    expect("}");
    return make(std::move(found));
}

const Type *Parser::type() {
    if (lexer_.token == Token::local) {
        const auto found = named_types_.find(lexer_.text);
        if (found == named_types_.end()) fail("no type %" + lexer_.text);
        lexer_.advance();
        return found->second;
    }
    if (take("{")) return structure(false);
    if (is("<") || is("[")) {
        const bool is_vector = next() == "<";
        if (is_vector && take("{")) {
            const Type *found = structure(true);
            expect(">");
            return found;
        }
        Type found{.kind = is_vector ? Kind::vector : Kind::array};
        found.count = whole_number();
        if (!take_word("x")) fail("a vector's or array's length is followed by x");
        found.elements.push_back(type());
        expect(is_vector ? ">" : "]");
        return make(std::move(found));
    }
    static const std::map<std::string_view, Type> words = {
        {"void", {}},
        {"half", {.kind = Kind::half, .bits = 16}},
        {"bfloat", {.kind = Kind::bfloat, .bits = 16}},
        {"float", {.kind = Kind::single, .bits = 32}},
        {"double", {.kind = Kind::real, .bits = 64}},
        {"ptr", {.kind = Kind::pointer, .bits = 64}},
        {"label", {.kind = Kind::label}},
        {"metadata", {.kind = Kind::metadata}},
    };
    const std::string word = next();
    if (is_integer_word(word)) {
        return make({.kind = Kind::integer, .bits = static_cast<unsigned>(std::stoul(word.substr(1)))});
    }
    const auto found = words.find(word);
    if (found == words.end()) fail("the type '" + word + "' is not known");
    Type one = found->second;
    if (one.kind == Kind::pointer && take_word("addrspace")) one.space = static_cast<unsigned>(in_parentheses());
    return make(std::move(one));
}

// ---- values ----

Value *Parser::make_value(ValueKind kind, const Type *type) {
    Value &value = module_.values.emplace_back();
    value.kind = kind, value.type = type;
    return &value;
}

Value *Parser::local(const std::string &name, const Type *type) {
    Value *&known = locals_[name];
    if (!known) {
        known = make_value(ValueKind::local, type);
        known->text = name;
        known->index = function_->locals++;
    }
    return known;
}

Value *Parser::global(const std::string &name, const Type *type) {
    Value *&known = globals_[name];
    if (!known) {
        known = make_value(ValueKind::global, type);
        known->text = name;
    }
    return known;
}

static const std::set<std::string_view> expressions = {
    "getelementptr", "addrspacecast", "inttoptr", "ptrtoint", "bitcast", "trunc", "add", "sub", "xor", "ptrtoaddr"};

bool Parser::at_value_word() const {
    static const std::set<std::string_view> words = {"true",   "false",           "null", "undef",
                                                     "poison", "zeroinitializer", "none", "splat"};
    return lexer_.token == Token::word && (words.contains(lexer_.text) || expressions.contains(lexer_.text));
}

// The elements, behind the opening sign.
Value *Parser::aggregate(const Type *type, std::string_view closing) {
    Value *found = make_value(ValueKind::aggregate, type);
    while (!is(closing)) {
        Value *element = typed_value();
        found->operands.push_back(element);
        if (!take(",")) break;
    }
    expect(closing);
    return found;
}

Value *Parser::expression(const Type *type) {
    Value *found = make_value(ValueKind::expression, type);
    found->text = next();
    while (lexer_.token == Token::word) {  // inbounds, nuw
        lexer_.advance();
        if (is("(") && found->operands.empty() && lexer_.token == Token::sign) break;
    }
    expect("(");
    if (found->text == "getelementptr") {
        found->source_type = this->type();
        expect(",");
    }
    do {
        Value *operand = typed_value();
        found->operands.push_back(operand);
    } while (take(","));
    if (take_word("to")) this->type();
    expect(")");
    return found;
}

Value *Parser::value(const Type *type) {
    if (type->kind == Kind::metadata) {  // of a call that is not compiled
        while (!is(",") && !is(")")) is("(") ? skip_parentheses() : lexer_.advance();
        return make_value(ValueKind::metadata, type);
    }
    if (lexer_.token == Token::local) return local(next(), type);
    if (lexer_.token == Token::global) return global(next(), type);
    if (lexer_.token == Token::number) {
        if (type->kind == Kind::integer && type->bits > 64) fail(ir::to_string(type) + " is not supported");
        const auto bits = number_bits(lexer_.text, type);
        if (!bits) fail("'" + lexer_.text + "' is no " + ir::to_string(type));
        lexer_.advance();
        Value *found = make_value(ValueKind::number, type);
        found->bits = *bits;
        return found;
    }
    if (lexer_.token == Token::bytes) {
        Value *found = make_value(ValueKind::bytes, type);
        found->text = next();
        return found;
    }
    if (take("[")) return aggregate(type, "]");
    if (take("{")) return aggregate(type, "}");
    if (take("<")) {
        const bool packed = take("{");
        Value *found = aggregate(type, packed ? "}" : ">");
        if (packed) expect(">");
        return found;
    }
    if (!at_value_word()) fail("'" + lexer_.text + "' is no value that is known");
    if (expressions.contains(lexer_.text)) return expression(type);
    const std::string word = next();
    if (word == "splat") {
        expect("(");
        Value *element = typed_value();
        expect(")");
        Value *found = make_value(ValueKind::aggregate, type);
        found->operands.assign(type->count, element);
        return found;
    }
    if (word == "undef" || word == "poison") return make_value(ValueKind::undefined, type);
    if (word == "true" || word == "false") {
        Value *found = make_value(ValueKind::number, type);
        found->bits = word == "true";
        return found;
    }
    return make_value(ValueKind::zero, type);
}

Value *Parser::assembly() {
    Value *found = make_value(ValueKind::assembly, nullptr);
    while (lexer_.token == Token::word) {  // sideeffect
        if (is_word("inteldialect")) fail("assembly in Intel's dialect");
        lexer_.advance();
    }
    found->text = next();
    expect(",");
    found->constraints = next();
    return found;
}

ir::Parameter Parser::attributes() {
    ir::Parameter found;
    while (true) {
        if (lexer_.token == Token::string) {
            const std::string name = next();
            if (take("=")) lexer_.advance();
            if (name == "nvvm.grid_constant") found.grid_constant = true;
        } else if (lexer_.token == Token::word && !at_type() && !at_value_word()) {
            const std::string name = next();
            if (name == "byval" || name == "sret" || name == "byref") {
                expect("(");
                const Type *of = type();
                expect(")");
                if (name == "byval") found.byval = of;
                if (name == "byref") fail("a parameter with byref");
            } else if (name == "align") {
                found.alignment = is("(") ? in_parentheses() : whole_number();
            } else {
                if (name == "readonly" || name == "readnone") found.readonly = true;
                if (name == "inalloca" || name == "preallocated") fail("a parameter with " + name);
                if (is("(")) skip_parentheses();
            }
        } else {
            return found;
        }
    }
}

}  // namespace compiler
