#include "ptx/parser.h"

#include "ptx/parser_impl.h"

namespace warpsim::ptx {

ParseError::ParseError(uint32_t line, const std::string &message)
    : std::runtime_error("PTX line " + std::to_string(line) + ": " + message), line(line) {}

Module parse(std::string_view text) {
    return Parser(text).run();
}

Parser::Parser(std::string_view text) : lexer_(text), text_bytes_(text.size()) {
    current_ = lexer_.next();
    ahead_ = lexer_.next();
}

void Parser::advance() {
    current_ = ahead_;
    ahead_ = lexer_.next();
}

void Parser::unexpected(const std::string &wanted) const {
    fail("expected " + wanted + " before " + quoted(current_));
}

bool Parser::accept(std::string_view punctuation) {
    if (!at(punctuation)) return false;
    advance();
    return true;
}

bool Parser::accept_dotted(std::string_view word) {
    if (!at_dotted(word)) return false;
    advance();
    return true;
}

void Parser::expect(std::string_view punctuation) {
    if (!accept(punctuation)) unexpected("'" + std::string(punctuation) + "'");
}

std::string_view Parser::identifier(const char *what) {
    if (current_.kind != TokenKind::identifier) unexpected(what);
    const std::string_view name = current_.text;
    advance();
    return name;
}

uint64_t Parser::unsigned_constant(const char *what) {
    const Constant value = constant();
    if (value.is_real || value.integer < 0) fail(std::string(what) + " must be an integer that is not negative");
    return static_cast<uint64_t>(value.integer);
}

Module Parser::run() {
    while (current_.kind != TokenKind::end) module_item();
    name_calls({});
    apply_aliases();
    return std::move(module_);
}

void Parser::module_item() {
    if (current_.kind != TokenKind::dotted) unexpected("a directive");
    if (accept_dotted("version")) return version();
    if (accept_dotted("target")) return target();
    if (accept_dotted("address_size")) {
        if (unsigned_constant("the address size") != 64) fail("only .address_size 64 is supported");
        return;
    }
    if (accept_dotted("file")) return file();
    if (accept_dotted("loc")) return loc();
    if (accept_dotted("section")) return section();
    if (accept_dotted("alias")) return alias();
    if (accept_dotted("pragma")) {
        while (!at(";") && current_.kind != TokenKind::end) advance();
        return expect(";");
    }
    bool external = false;
    for (;; advance()) {
        if (at_dotted("extern"))
            external = true;
        else if (!at_dotted("visible") && !at_dotted("weak") && !at_dotted("common"))
            break;
    }
    if (accept_dotted("entry")) return function(true);
    if (accept_dotted("func")) return function(false);
    Space space;
    if (accept_dotted("global"))
        space = Space::global;
    else if (accept_dotted("const"))
        space = Space::const_;
    else if (accept_dotted("shared"))
        space = Space::shared;
    else if (accept_dotted("tex"))
        space = Space::global;
    else
        unexpected("a module-level directive");
    module_variables(space, external);
}

void Parser::function(bool is_entry) {
    Function function;
    function_ = &function;
    function.is_entry = is_entry;
    source_ = {};
    registers_ = ranges_ = locals_ = prototypes_ = Scopes();
    register_ranges_.clear(), local_names_.clear(), used_names_.clear(), label_scopes_.clear();
    register_parameters_.clear(), register_returns_.clear();
    open_scope();

    attribute();
    if (!is_entry && at("(")) parameters(function.returns, register_returns_);
    function.name = identifier("a function name");
    if (at("(")) parameters(function.parameters, register_parameters_);
    while (function_directive(function)) {
    }
    if (accept(";")) {
        function.is_declaration = true;
    } else {
        body();
    }
    function_ = nullptr;
    keep_function(std::move(function));
}

void Parser::parameters(std::vector<Variable> &list, std::vector<RegisterParameter> &in_registers) {
    expect("(");
    if (accept(")")) return;
    do {
        const bool in_register = at_dotted("reg");
        if (!in_register && !at_dotted("param")) unexpected("'.param'");
        advance();
        Declaration declared = declarator(specifiers(Space::param));
        Variable &variable = declared.variable;
        const std::string_view source_name = declared.name;
        if (in_register) {
            if (type_bytes(variable.type) == 0) fail("a .reg parameter of this type is not supported");
            variable.name = unique_name(source_name);
            if (!registers_.declare(source_name, static_cast<uint32_t>(function_->registers.size())))
                fail("'" + std::string(source_name) + "' is declared twice");
            in_registers.push_back(
                {add_register(std::string(source_name), variable.type, 1), variable.name, variable.type});
        } else {
            name_local(variable, source_name);
        }
        list.push_back(std::move(variable));
    } while (accept(","));
    expect(")");
}

void Parser::keep_function(Function &&function) {
    const auto [found, is_new] = functions_.try_emplace(function.name, module_.functions.size());
    if (is_new) {
        module_.functions.push_back(std::move(function));
        return;
    }
    Function &known = module_.functions[found->second];
    if (function.is_declaration) return;
    if (!known.is_declaration) fail("function '" + function.name + "' is defined twice");
    known = std::move(function);
}

namespace {

void rename_symbols(Operand &operand, const std::unordered_map<std::string, std::string> &names) {
    if (operand.kind == Operand::Kind::symbol)
        if (const auto found = names.find(operand.name); found != names.end()) operand.name = found->second;
    for (Operand &element : operand.elements) rename_symbols(element, names);
}

}  // namespace

// An alias is another name of a function: every use gets the real one, and the alias's declaration goes.
void Parser::apply_aliases() {
    if (aliases_.empty()) return;
    for (auto &[name, target] : aliases_)
        for (size_t steps = 0; aliases_.contains(target); target = aliases_.at(target))
            if (++steps > 8) fail("'.alias " + name + "' leads nowhere");
    for (Function &function : module_.functions)
        for (Instruction &instruction : function.body)
            for (Operand &operand : instruction.operands) rename_symbols(operand, aliases_);
    for (Variable &variable : module_.variables)
        for (Variable::Relocation &relocation : variable.relocations)
            if (const auto found = aliases_.find(relocation.symbol); found != aliases_.end())
                relocation.symbol = found->second;
    std::erase_if(module_.functions, [&](const Function &f) { return f.is_declaration && aliases_.contains(f.name); });
}

}  // namespace warpsim::ptx
