#include "ptx/parser_impl.h"

#include <utility>

namespace warpsim::ptx {
namespace {

constexpr uint32_t kMaxScopes = 128;

}  // namespace

void Parser::open_scope() {
    if (label_scopes_.size() >= kMaxScopes) fail("'{' is nested too deeply");
    registers_.open(), ranges_.open(), locals_.open(), prototypes_.open();
    label_scopes_.emplace_back();
}

// Labels may be used before they stand: a scope's uses are settled when it closes, or passed to the scope around it.
void Parser::close_scope() {
    LabelScope scope = std::move(label_scopes_.back());
    label_scopes_.pop_back();
    for (const LabelReference &reference : scope.pending) {
        const auto found = scope.labels.find(reference.name);
        if (found == scope.labels.end()) {
            if (label_scopes_.size() <= 1)
                throw ParseError(reference.line,
                                 "label '" + std::string(reference.name.substr(0, 60)) + "' is not defined");
            label_scopes_.back().pending.push_back(reference);
        } else if (reference.in_targets) {
            function_->labels[reference.owner].targets[reference.position] = found->second;
        } else {
            function_->body[reference.owner].operands[reference.position].index = found->second;
        }
    }
    registers_.close(), ranges_.close(), locals_.close(), prototypes_.close();
}

uint32_t Parser::define_label(std::string_view name, uint32_t line) {
    const uint32_t index = static_cast<uint32_t>(function_->labels.size());
    if (!label_scopes_.back().labels.try_emplace(name, index).second)
        throw ParseError(line, "label '" + std::string(name.substr(0, 60)) + "' is defined twice");
    function_->labels.push_back({std::string(name), static_cast<uint32_t>(function_->body.size()), {}});
    return index;
}

void Parser::body() {
    const size_t outer = label_scopes_.size();
    expect("{");
    open_scope();
    for (const RegisterParameter &parameter : register_parameters_) {
        Instruction load;
        load.opcode = "ld";
        load.modifiers = {"param", type_name(parameter.type)};
        load.ptx_line = current_.line;
        Operand target, address, base;
        target.kind = Operand::Kind::reg, target.index = parameter.reg, target.type = parameter.type;
        base.kind = Operand::Kind::symbol, base.name = parameter.variable;
        address.kind = Operand::Kind::address, address.elements = {base};
        load.operands = {target, address};
        function_->body.push_back(std::move(load));
    }
    while (label_scopes_.size() > outer) {
        if (accept("{")) {
            open_scope();
        } else if (at("}")) {
            if (label_scopes_.size() == outer + 1 && !register_returns_.empty()) store_register_returns({});
            close_scope();
            advance();
        } else {
            statement();
        }
    }
}

void Parser::statement() {
    if (accept(";")) return;
    if (current_.kind == TokenKind::dotted) {
        if (accept_dotted("reg")) return register_declaration();
        if (accept_dotted("local")) return local_variables(Space::local);
        if (accept_dotted("shared")) return local_variables(Space::shared);
        if (accept_dotted("param")) return local_variables(Space::param);
        if (accept_dotted("global")) return local_variables(Space::global);
        if (accept_dotted("const")) return local_variables(Space::const_);
        if (accept_dotted("loc")) return loc();
        if (accept_dotted("file")) return file();
        if (accept_dotted("section")) return section();
        if (at_dotted("extern") || at_dotted("visible") || at_dotted("weak") || at_dotted("common")) return advance();
        if (at_dotted("pragma")) {
            function_directive(*function_);
            return;
        }
        fail("unknown directive " + quoted(current_));
    }
    if (current_.kind == TokenKind::identifier && ahead_.kind == TokenKind::punctuation && ahead_.text == ":") {
        const Token name = current_;
        advance(), advance();
        if (accept_dotted("branchtargets")) return branch_targets(define_label(name.text, name.line));
        if (accept_dotted("callprototype")) return call_prototype(name.text);
        if (accept_dotted("calltargets")) {  // the callee's register says it all
            do identifier("a function name");
            while (accept(","));
            expect(";");
            if (!prototypes_.declare(name.text, static_cast<uint32_t>(local_names_.size())))
                throw ParseError(name.line, quoted(name) + " is declared twice");
            local_names_.push_back({std::string(name.text), Type::none});
            return;
        }
        define_label(name.text, name.line);
        return;
    }
    instruction();
}

// Guard, opcode and modifiers.
Instruction Parser::instruction_head() {
    Instruction instruction;
    instruction.ptx_line = current_.line;
    instruction.source = source_;
    instruction.used_bytes = std::exchange(used_bytes_, ~0u);
    if (accept("@")) {
        instruction.guard_negated = accept("!");
        const Token name = current_;
        Operand guard;
        if (!find_register(identifier("a predicate"), guard) || guard.type != Type::pred)
            throw ParseError(name.line, "guard " + quoted(name) + " is no predicate register");
        instruction.guard = static_cast<int>(guard.index);
    }
    instruction.opcode = identifier("an instruction");
    for (; current_.kind == TokenKind::dotted; advance()) instruction.modifiers.emplace_back(current_.text);
    return instruction;
}

void Parser::instruction() {
    Instruction instruction = instruction_head();
    if (instruction.opcode == "call") return call(std::move(instruction));
    const size_t label_position = instruction.opcode == "bra" ? 0 : instruction.opcode == "brx" ? 1 : SIZE_MAX;
    if (!at(";")) {
        do {
            if (instruction.operands.size() == label_position) {
                Operand label;
                label.kind = Operand::Kind::label;
                const uint32_t line = current_.line;
                label_scopes_.back().pending.push_back({identifier("a label"), line, false,
                                                        static_cast<uint32_t>(function_->body.size()),
                                                        static_cast<uint32_t>(label_position)});
                instruction.operands.push_back(std::move(label));
            } else {
                instruction.operands.push_back(operand());
            }
        } while (accept(","));
    }
    expect(";");
    if (instruction.opcode == "ret" && !register_returns_.empty()) store_register_returns(instruction);
    function_->body.push_back(std::move(instruction));
}

void Parser::store_register_returns(const Instruction &ret) {
    for (const RegisterParameter &result : register_returns_) {
        Instruction store;
        store.opcode = "st";
        store.modifiers = {"param", type_name(result.type)};
        store.guard = ret.guard, store.guard_negated = ret.guard_negated;
        store.source = source_, store.ptx_line = current_.line;
        Operand value, address, base;
        value.kind = Operand::Kind::reg, value.index = result.reg, value.type = result.type;
        base.kind = Operand::Kind::symbol, base.name = result.variable;
        address.kind = Operand::Kind::address, address.elements = {base};
        store.operands = {address, value};
        function_->body.push_back(std::move(store));
    }
}

// call (ret), f, (a, b), prototype;   every part but f may be missing. Registers and numbers as arguments or results
// (allowed in PTX, never written by nvcc) go through .param variables made here.
void Parser::call(Instruction &&instruction) {
    Operand results, arguments;
    results.kind = arguments.kind = Operand::Kind::vector;
    const auto list = [&](Operand &into) {
        expect("(");
        if (accept(")")) return;
        do {
            if (into.elements.size() >= 1024) fail("a call with too many arguments");
            into.elements.push_back(operand_atom());
        } while (accept(","));
        expect(")");
    };
    if (at("(")) {
        list(results);
        expect(",");
    }
    Operand callee = named_operand();
    if (callee.kind != Operand::Kind::symbol && callee.kind != Operand::Kind::reg)
        fail("a call of something that is no function");
    std::vector<Operand> prototype;
    if (accept(",")) {
        if (at("(")) {
            list(arguments);
            if (accept(",")) prototype.push_back(named_operand());
        } else {
            prototype.push_back(named_operand());
        }
    }
    expect(";");

    const auto known = callee.kind == Operand::Kind::symbol ? functions_.find(callee.name) : functions_.end();
    const Function *function = known != functions_.end() ? &module_.functions[known->second] : nullptr;
    std::vector<Instruction> loads;
    const auto through_param = [&](Operand &operand, const std::vector<Variable> *declared, size_t i, bool is_result) {
        if (operand.kind == Operand::Kind::symbol) return;
        if (operand.kind == Operand::Kind::sink && !is_result) fail("a call's argument is missing");
        Variable variable;
        variable.space = Space::param;
        variable.type = declared && i < declared->size()     ? (*declared)[i].type
                        : operand.kind == Operand::Kind::reg ? operand.type
                                                             : Type::b32;
        variable.bytes = variable.align = type_bytes(variable.type);
        if (!variable.bytes) fail("an argument of this type is not supported");
        variable.name = unique_name("call_parameter");
        Operand address, base;
        base.kind = Operand::Kind::symbol, base.name = variable.name;
        address.kind = Operand::Kind::address, address.elements = {base};
        Instruction move = instruction;
        move.opcode = is_result ? "ld" : "st";
        move.modifiers = {"param", type_name(variable.type)};
        if (is_result) {
            move.operands = {operand, address};
            if (operand.kind != Operand::Kind::sink) loads.push_back(std::move(move));
        } else {
            move.operands = {address, operand};
            function_->body.push_back(std::move(move));
        }
        operand = base;
        function_->variables.push_back(std::move(variable));
    };
    for (size_t i = 0; i < arguments.elements.size(); ++i)
        through_param(arguments.elements[i], function ? &function->parameters : nullptr, i, false);
    for (size_t i = 0; i < results.elements.size(); ++i)
        through_param(results.elements[i], function ? &function->returns : nullptr, i, true);
    instruction.operands = {std::move(results), std::move(callee), std::move(arguments)};
    for (Operand &operand : prototype) instruction.operands.push_back(std::move(operand));
    function_->body.push_back(std::move(instruction));
    for (Instruction &load : loads) function_->body.push_back(std::move(load));
}

}  // namespace warpsim::ptx
