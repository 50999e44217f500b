#include "parser.h"

#include <charconv>

#include "parser_impl.h"

namespace compiler {

using ir::Type;

// A value's type at its first mention may be that of an expression's operand; what is defined says what it is.
void Parser::global_variable() {
    const std::string name = next();
    expect("=");
    ir::Global found;
    found.name = name;
    while (!is_word("global") && !is_word("constant")) {
        if (is_word("external")) found.is_external = true;
        if (is_word("alias") || is_word("ifunc")) fail("an alias: @" + name);
        if (is_word("thread_local")) fail("a variable with thread_local: @" + name);
        if (take_word("addrspace")) {
            found.space = static_cast<unsigned>(in_parentheses());
        } else {
            lexer_.advance();
            if (is("(")) skip_parentheses();
        }
        if (lexer_.token == Token::end) fail("the variable @" + name + " does not end");
    }
    found.is_constant = next() == "constant";
    found.type = type();
    if (!found.is_external && (at_value_word() || lexer_.token == Token::number || lexer_.token == Token::bytes ||
                               lexer_.token == Token::global || is("[") || is("{") || is("<")))
        found.initialiser = value(found.type);
    while (take(",")) {
        if (take_word("align")) {
            found.alignment = whole_number();
        } else {  // section "...", comdat, an attachment
            const bool is_section = is_word("section");
            lexer_.advance();
            if (is_section || lexer_.token == Token::metadata) lexer_.advance();
            if (is("(")) skip_parentheses();
        }
    }
    while (lexer_.token == Token::group) lexer_.advance();
    found.value = global(name, make({.kind = ir::Kind::pointer, .bits = 64, .space = found.space}));
    module_.globals.push_back(found);
    module_.global_of[found.value] = &module_.globals.back();
}

void Parser::type_definition() {
    const std::string name = next();
    expect("=");
    if (!take_word("type")) fail("%" + name + " is no type");
    Type *&known = named_types_[name];
    if (!known) known = &module_.types.emplace_back();
    if (take_word("opaque")) return;
    const bool packed = take("<");
    expect("{");
    Type found{.kind = ir::Kind::structure, .packed = packed, .name = name};
    while (!is("}")) {
        // It may come later in the file.
        if (lexer_.token == Token::local && !named_types_.contains(lexer_.text))
            named_types_[lexer_.text] = &module_.types.emplace_back();
        found.elements.push_back(type());
        if (!take(",")) break;
    }
    expect("}");
    if (packed) expect(">");
    *named_types_[name] = std::move(found);
}

void Parser::attribute_group() {
    const std::string name = next();
    expect("=");
    expect("{");
    ir::Attributes &into = module_.attribute_groups[name];
    while (!take("}")) {
        if (lexer_.token == Token::end) fail("the attributes do not end");
        const std::string key = next();
        if (is("(")) {
            skip_parentheses();
        } else if (take("=")) {
            into[key] = next();
        } else {
            into[key];
        }
    }
}

void Parser::metadata_node() {
    const std::string name = next();
    expect("=");
    int number = -1;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool has_number = error == std::errc() && rest == name.data() + name.size();
    take_word("distinct");
    ir::Metadata node;
    if (lexer_.token == Token::metadata) node.kind = next();
    if (take("{")) {
        while (!take("}")) {
            if (lexer_.token == Token::end) fail("a node of metadata does not end");
            is("(") ? skip_parentheses() : lexer_.advance();
        }
    } else if (take("(")) {
        while (!take(")")) {
            const std::string key = next();
            if (!take(":")) continue;
            std::string &text = node.fields[key];
            int depth = 0;
            while (depth > 0 || (!is(",") && !is(")"))) {
                if (lexer_.token == Token::end) fail("a node of metadata does not end");
                if (is("(") || is("{")) ++depth;
                if (is(")") || is("}")) --depth;
                text += next();
            }
            take(",");
        }
    } else if (lexer_.token == Token::string) {
        lexer_.advance();
    }
    if (has_number) module_.metadata[number] = std::move(node);
}

void Parser::parameters(ir::Function &function) {
    expect("(");
    unsigned number = 0;
    while (!is(")")) {
        if (take("...")) {
            function.is_variadic = true;
            break;
        }
        const Type *of = type();
        ir::Parameter one = attributes();
        const bool has_name = lexer_.token == Token::local;
        one.value = local(has_name ? next() : "?" + std::to_string(number), of);
        one.value->type = of;
        function.parameters.push_back(one);
        ++number;
        if (!take(",")) break;
    }
    expect(")");
}

void Parser::function(bool declaration) {
    ir::Function &found = module_.functions.emplace_back();
    function_ = &found;
    locals_.clear();
    found.is_declaration = declaration;
    while (lexer_.token == Token::metadata) lexer_.advance(), lexer_.advance();
    while (!at_type()) {  // linkage, calling convention, attributes of the result
        if (is_word("ptx_kernel")) found.is_kernel = true;
        if (take_word("align")) {
            whole_number();
            continue;
        }
        if (lexer_.token != Token::word && lexer_.token != Token::string) fail("'" + lexer_.text + "' in a definition");
        lexer_.advance();
        if (is("(")) skip_parentheses();
    }
    found.returns = type();
    if (lexer_.token != Token::global) fail("a function without a name");
    found.name = next();
    found.value = global(found.name, make({.kind = ir::Kind::pointer, .bits = 64}));
    found.value->kind = ir::ValueKind::function;
    module_.function_of[found.value] = &found;
    parameters(found);
    while (!is("{") && lexer_.token != Token::end) {
        if (declaration && (is_word("define") || is_word("declare") || is_word("attributes"))) break;
        if (lexer_.token == Token::global || lexer_.token == Token::comdat) break;
        if (declaration && lexer_.token == Token::metadata) break;
        if (lexer_.token == Token::group) {
            found.attribute_group = next();
            if (is("=")) fail("attributes without a function");
        } else if (lexer_.token == Token::metadata) {
            const bool is_debug = next() == "dbg";
            const std::string number = next();
            if (is_debug) found.debug = std::stoi(number);
        } else if (lexer_.token == Token::string) {
            const std::string key = next();
            found.attributes[key] = take("=") ? next() : "";
        } else {
            lexer_.advance();
            if (is("(")) skip_parentheses();
        }
    }
    if (!declaration) body(found);
}

void Parser::parse_module() {
    while (lexer_.token != Token::end) {
        if (take_word("source_filename") || take_word("target")) {
            while (!take("=")) lexer_.advance();
            lexer_.advance();
        } else if (lexer_.token == Token::local) {
            type_definition();
        } else if (lexer_.token == Token::comdat) {
            next();
            expect("=");
            lexer_.advance(), lexer_.advance();  // comdat any
        } else if (lexer_.token == Token::global) {
            global_variable();
        } else if (take_word("define")) {
            function(false);
        } else if (take_word("declare")) {
            function(true);
        } else if (take_word("attributes")) {
            attribute_group();
        } else if (lexer_.token == Token::metadata) {
            metadata_node();
        } else {
            fail("'" + lexer_.text + "' is nothing that a module has");
        }
    }
    for (ir::Function &one : module_.functions)
        if (const auto group = module_.attribute_groups.find(one.attribute_group);
            group != module_.attribute_groups.end())
            one.attributes.insert(group->second.begin(), group->second.end());
}

std::unique_ptr<ir::Module> parse(std::string_view text) {
    auto module = std::make_unique<ir::Module>();
    Parser(text, *module).parse_module();
    return module;
}

}  // namespace compiler
