#include <set>

#include "parser_impl.h"

namespace compiler {

using ir::Instruction, ir::Type, ir::Value;

ir::Block *Parser::block(const std::string &name) {
    ir::Block *&known = blocks_[name];
    if (!known) {
        known = &ahead_.emplace_back();
        known->name = name;
    }
    return known;
}

ir::Block *Parser::label() {
    if (!take_word("label") || lexer_.token != Token::local) fail("a label is missing");
    return block(next());
}

void Parser::flags(Instruction &one) {
    static const std::set<std::string_view> all = {"nuw",      "nsw",      "exact", "nneg",   "disjoint", "samesign",
                                                   "inbounds", "nusw",     "fast",  "nnan",   "ninf",     "nsz",
                                                   "arcp",     "contract", "afn",   "reassoc"};
    while (lexer_.token == Token::word && (all.contains(lexer_.text) || lexer_.text == "inrange")) {
        if (is_word("nuw")) one.no_unsigned_wrap = true;
        if (is_word("contract") || is_word("fast")) one.contract = true;
        lexer_.advance();
        if (is("(")) skip_parentheses();
    }
}

void Parser::two(Instruction &one) {
    const Type *of = type();
    one.operands.push_back(value(of));
    expect(",");
    one.operands.push_back(value(of));
    one.type = of;
}

void Parser::access(Instruction &one) {
    if (take_word("syncscope")) {
        expect("(");
        one.syncscope = next();
        expect(")");
    }
    if (one.opcode == "cmpxchg") one.detail = next();  // where it swaps; the other one is no stronger
    while (lexer_.token == Token::word && !is_word("align")) one.ordering = next();
}

void Parser::memory(Instruction &one) {
    one.is_atomic = take_word("atomic");
    one.is_volatile = take_word("volatile");
    if (one.opcode == "load") {
        one.type = type();
        expect(",");
        one.operands.push_back(typed_value());
    } else {
        one.operands.push_back(typed_value());
        one.type = one.operands[0]->type;
        expect(",");
        one.operands.push_back(typed_value());
    }
    if (one.is_atomic) access(one);
}

void Parser::call(Instruction &one) {
    flags(one);
    while (is_word("ptx_device") || is_word("ptx_kernel") || is_word("fastcc") || is_word("coldcc")) lexer_.advance();
    attributes();
    one.type = type();
    if (is("(")) skip_parentheses();  // the types of a function that takes any number of arguments
    Value *callee = nullptr;
    if (take_word("asm")) {
        callee = assembly();
    } else {
        static const Type pointer{.kind = ir::Kind::pointer, .bits = 64};
        callee = value(&pointer);
    }
    expect("(");
    while (!is(")")) {
        const Type *of = type();
        const ir::Parameter found = attributes();
        one.operands.push_back(value(of));
        one.byval.push_back(found.byval);
        one.indices.push_back(found.alignment ? found.alignment : 1);
        if (!take(",")) break;
    }
    expect(")");
    one.operands.push_back(callee);
    while (lexer_.token == Token::group || lexer_.token == Token::string || lexer_.token == Token::word) {
        if (lexer_.text == "#dbg_value" || lexer_.text == "#dbg_declare") break;
        if (lexer_.token != Token::group && at_type()) break;
        // A word may begin the next instruction; attributes of a call that are no group are a few.
        static const std::set<std::string_view> words = {"nounwind", "convergent", "memory", "noreturn", "noinline"};
        if (lexer_.token == Token::word && !words.contains(lexer_.text)) break;
        lexer_.advance();
        if (is("(")) skip_parentheses();
        if (take("=")) lexer_.advance();
    }
    if (is("[")) {  // operand bundles of an assumption
        while (!take("]")) is("(") ? skip_parentheses() : lexer_.advance();
    }
}

void Parser::phi(Instruction &one) {
    flags(one);
    one.type = type();
    do {
        if (!take("[")) fail("a phi's pair is missing");
        one.operands.push_back(value(one.type));
        expect(",");
        if (lexer_.token != Token::local) fail("a phi's block is missing");
        one.blocks.push_back(block(next()));
        expect("]");
        if (!is(",")) break;
        lexer_.advance();
    } while (is("["));
    // An attachment follows a comma, which is taken: attachments() goes on from there.
}

void Parser::branch(Instruction &one) {
    if (is_word("label")) {
        one.blocks.push_back(label());
        return;
    }
    one.operands.push_back(typed_value());
    expect(",");
    one.blocks.push_back(label());
    expect(",");
    one.blocks.push_back(label());
}

// The default first.
void Parser::switch_between(Instruction &one) {
    one.operands.push_back(typed_value());
    expect(",");
    one.blocks.push_back(label());
    expect("[");
    while (!is("]")) {
        one.operands.push_back(typed_value());
        expect(",");
        one.blocks.push_back(label());
    }
    expect("]");
}

void Parser::element_of(Instruction &one) {
    one.operands.push_back(typed_value());
    if (one.opcode == "insertvalue") {
        expect(",");
        one.operands.push_back(typed_value());
    }
    one.type = one.operands[0]->type;
    while (is(",")) {
        lexer_.advance();
        if (lexer_.token != Token::number) break;  // an attachment
        one.indices.push_back(whole_number());
        if (one.opcode == "extractvalue") one.type = one.type->element(one.indices.back());
    }
}

void Parser::operands_of(Instruction &one) {
    static const std::set<std::string_view> binary = {"add",  "sub",  "mul",  "udiv", "sdiv", "urem",
                                                      "srem", "shl",  "lshr", "ashr", "and",  "or",
                                                      "xor",  "fadd", "fsub", "fmul", "fdiv", "frem"};
    static const std::set<std::string_view> casts = {"trunc",    "zext",    "sext",          "fptrunc",  "fpext",
                                                     "fptoui",   "fptosi",  "uitofp",        "sitofp",   "ptrtoint",
                                                     "inttoptr", "bitcast", "addrspacecast", "ptrtoaddr"};
    const std::string &opcode = one.opcode;
    if (opcode == "load" || opcode == "store") return memory(one);
    if (opcode == "call") return call(one);
    if (opcode == "phi") return phi(one);
    if (opcode == "br") return branch(one);
    if (opcode == "switch") return switch_between(one);
    if (opcode == "extractvalue" || opcode == "insertvalue") return element_of(one);
    if (opcode == "ret") {
        one.type = type();
        if (one.type->kind != ir::Kind::nothing) one.operands.push_back(value(one.type));
        return;
    }
    if (opcode == "unreachable") return;
    if (opcode == "fence") return access(one);
    if (opcode == "atomicrmw" || opcode == "cmpxchg") {
        take_word("weak");
        one.is_volatile = take_word("volatile");
        if (opcode == "atomicrmw") one.detail = next();
    }
    if (opcode == "icmp" || opcode == "fcmp") {
        flags(one);
        one.detail = next();
    }
    flags(one);
    if (binary.contains(opcode)) return two(one);
    if (opcode == "icmp" || opcode == "fcmp") {
        two(one);
        one.type = one.type->kind == ir::Kind::vector
                       ? make({.kind = ir::Kind::vector,
                               .count = one.type->count,
                               .elements = {make({.kind = ir::Kind::integer, .bits = 1})}})
                       : make({.kind = ir::Kind::integer, .bits = 1});
        return;
    }
    if (casts.contains(opcode)) {
        one.operands.push_back(typed_value());
        if (!take_word("to")) fail("a conversion to nothing");
        one.type = type();
        return;
    }
    if (opcode == "alloca" || opcode == "getelementptr") {
        one.source_type = type();
        if (opcode == "alloca") one.type = make({.kind = ir::Kind::pointer, .bits = 64});
        if (opcode == "getelementptr" && !is(",")) fail("an address of nothing");
        if (!is(",")) return;
        lexer_.advance();
        if (opcode == "alloca" && !at_type()) return;  // an alignment or an attachment
    }
    static const std::set<std::string_view> others = {
        "select",        "fneg",          "freeze",    "getelementptr", "extractelement",
        "insertelement", "shufflevector", "atomicrmw", "cmpxchg",       "alloca"};
    if (!others.contains(opcode)) fail("the instruction '" + opcode + "' is not supported");
    while (true) {
        one.operands.push_back(typed_value());
        if (!is(",")) break;
        lexer_.advance();
        if (!at_type()) break;  // an alignment or an attachment
    }
    if (opcode == "alloca") {
        fail("an alloca whose size is not a constant");
    } else if (opcode == "getelementptr") {
        one.type = one.operands[0]->type;
    } else if (opcode == "select") {
        one.type = one.operands.at(1)->type;
    } else if (opcode == "extractelement") {
        one.type = one.operands[0]->type->elements.at(0);
    } else if (opcode == "shufflevector") {
        one.type = make({.kind = ir::Kind::vector,
                         .count = one.operands.at(2)->type->count,
                         .elements = {one.operands[0]->type->elements.at(0)}});
    } else if (opcode == "atomicrmw") {
        one.type = one.operands.at(1)->type;
    } else if (opcode == "cmpxchg") {
        const Type *bit = make({.kind = ir::Kind::integer, .bits = 1});
        one.type = make({.kind = ir::Kind::structure, .elements = {one.operands.at(1)->type, bit}});
    } else {
        one.type = one.operands[0]->type;
    }
    if (opcode == "atomicrmw" || opcode == "cmpxchg") access(one);
}

// , align 4, !dbg !7, !tbaa !8: the first comma may have been taken.
void Parser::attachments(Instruction &one) {
    while (true) {
        take(",");
        if (take_word("align")) {
            one.alignment = whole_number();
        } else if (take_word("addrspace")) {
            one.type = make({.kind = ir::Kind::pointer, .bits = 64, .space = static_cast<unsigned>(in_parentheses())});
        } else if (lexer_.token == Token::metadata) {
            const std::string name = next();
            if (lexer_.token == Token::metadata) {
                const std::string number = next();
                if (name == "dbg" && !number.empty() && number[0] >= '0' && number[0] <= '9')
                    one.debug = std::stoi(number);
                if (name == "nontemporal") one.is_nontemporal = true;
                if (is("(")) skip_parentheses();
                if (number.empty() && is("{"))
                    while (!take("}")) lexer_.advance();
            }
        } else {
            return;
        }
    }
}

void Parser::instruction(ir::Block &into) {
    Instruction one;
    std::string name;
    if (lexer_.token == Token::local) {
        name = next();
        expect("=");
    }
    if (lexer_.token == Token::group) {  // #dbg_value(...)
        lexer_.advance();
        return skip_parentheses();
    }
    if (is_word("tail") || is_word("musttail") || is_word("notail")) lexer_.advance();
    if (lexer_.token != Token::word) fail("'" + lexer_.text + "' is no instruction");
    one.opcode = next();
    operands_of(one);
    attachments(one);
    static const std::set<std::string_view> without = {"store", "call",        "br",        "ret",    "switch",
                                                       "fence", "unreachable", "atomicrmw", "cmpxchg"};
    if (name.empty() && !without.contains(one.opcode)) fail("the result of '" + one.opcode + "' has no name");
    if (!name.empty()) {
        one.result = local(name, one.type);
        one.result->type = one.type;
    }
    into.instructions.push_back(std::move(one));
}

void Parser::body(ir::Function &function) {
    expect("{");
    blocks_.clear();
    ahead_.clear();
    std::deque<ir::Block> found;
    std::map<ir::Block *, ir::Block *> defined;
    ir::Block *current = nullptr;
    const auto begin = [&](const std::string &name) {
        current = &found.emplace_back();
        current->name = name;
        current->index = static_cast<unsigned>(found.size() - 1);
        defined[block(name)] = current;
    };
    while (!is("}")) {
        if (lexer_.token == Token::end) fail("the function does not end");
        if (lexer_.token == Token::label) {
            begin(next());
            continue;
        }
        if (!current) {  // the first one may have no label, but then it has a number
            size_t unnamed = 0;
            for (const ir::Parameter &one : function.parameters)
                unnamed += one.value->text.find_first_not_of("0123456789") == std::string::npos;
            begin(std::to_string(unnamed));
        }
        instruction(*current);
    }
    expect("}");
    for (ir::Block &one : found)
        for (Instruction &each : one.instructions)
            for (ir::Block *&target : each.blocks) {
                if (!defined.contains(target)) fail("no block %" + target->name);
                target = defined[target];
            }
    function.blocks = std::move(found);  // a deque that is moved keeps its elements where they are
}

}  // namespace compiler
