#include <algorithm>

#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type, ir::Value, ir::ValueKind;
using machine::Effect, machine::Register;

static std::string defined(uint32_t variable) {
    return machine::kDefinition + std::to_string(variable) + machine::kEnd;
}

void Lowering::call(const Instruction &one) {
    const Value *callee = one.operands.back();
    if (callee->kind == ValueKind::assembly) return assembly(one);
    if (callee->kind != ValueKind::function) refuse("a call through a pointer");
    if (callee->text.starts_with("llvm.")) return intrinsic(one, callee->text);
    call_function(one, *module_.function_of.at(callee));
}

void Lowering::call_function(const Instruction &one, const ir::Function &callee) {
    if (callee.is_variadic) refuse("a call with any number of arguments: " + callee.name);
    if (std::find(called_.begin(), called_.end(), &callee) == called_.end()) called_.push_back(&callee);
    struct Store {
        std::string name;
        ir::Leaf leaf;
        std::string value;
        bool widened;
    };
    std::vector<std::string> declarations;
    std::vector<Store> stores;
    std::string names;
    for (size_t i = 0; i + 1 < one.operands.size(); ++i) {
        const Value *argument = one.operands[i];
        const std::string name = format("argument{}", i);
        names += (i ? ", " : "") + name;
        declarations.push_back(parameter_declaration(argument->type, 1, false, name));
        Texts values;
        if (one.byval[i]) {  // a copy of its own, by its address
            const uint64_t alignment = std::max(one.indices[i], ir::alignment_of(one.byval[i]));
            const Address copy = local_bytes(ir::size_of(one.byval[i]), alignment);
            copy_bytes(copy, address(argument), ir::size_of(one.byval[i]), alignment);
            values = {pointer(copy, generic)};
        } else {
            values = operands(argument);
        }
        const std::vector<ir::Leaf> leaves = ir::leaves_of(argument->type);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
            const Type *type = leaves[leaf].type;
            const bool widened = type == argument->type && type->kind == Kind::integer && type->bits < 32;
            if (widened && type->bits == 1) values[leaf] = number_of(values[leaf]);
            stores.push_back({name, leaves[leaf], values[leaf], widened});
        }
    }
    emit("{", Effect::other).is_assembly = true;
    for (const std::string &declaration : declarations) emit(declaration, Effect::other);
    for (const Store &store : stores) {
        const Address at{parameter, store.name, 0, true};
        if (store.widened) {
            emit(format("st.param.b32 [{}], {}", store.name, store.value), Effect::other);
        } else {
            store_leaf("st", at, store.leaf, store.value, 1, false);
        }
    }
    const bool returns = one.type->kind != Kind::nothing;
    if (returns) emit(parameter_declaration(one.type, 1, false, "returned"), Effect::other);
    emit(format("call.uni {}{}, ({})", returns ? "(returned), " : "", symbols_[callee.name], names), Effect::other);
    Texts found;
    if (returns) {
        const Address at{parameter, "returned", 0, true};
        for (const ir::Leaf &leaf : ir::leaves_of(one.type)) {
            if (leaf.type == one.type && leaf.type->kind == Kind::integer && leaf.type->bits < 32) {
                const std::string word = emit_to(Register::b32, "ld.param.b32", "[returned]");
                found.push_back(leaf.type->bits == 1 ? predicate_of(word) : narrowed(leaf.type, word));
            } else {
                found.push_back(load_leaf("ld", at, leaf, 1, false));
            }
        }
    }
    emit("}", Effect::other).is_assembly = true;
    define(one, std::move(found));
}

// ---- inline assembly ----

static std::vector<std::string> words_of(const std::string &text) {
    std::vector<std::string> found(1);
    for (const char c : text) {
        if (c == ',') {
            found.emplace_back();
        } else {
            found.back() += c;
        }
    }
    return found;
}

static Register register_of_letter(char letter) {
    switch (letter) {
        case 'b':
            return Register::predicate;
        case 'h':
            return Register::b16;
        case 'r':
            return Register::b32;
        case 'l':
            return Register::b64;
        case 'f':
            return Register::f32;
        default:
            return Register::f64;
    }
}

// The template with its operands in place: $0, ${0}, $$, ${:uid}.
static std::string filled(const std::string &text, const std::vector<std::string> &operands, int number) {
    std::string found;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '$') {
            found += text[at];
            continue;
        }
        if (++at == text.size()) return "";
        if (text[at] == '$' || text[at] == '(' || text[at] == ')' || text[at] == '|') {
            found += text[at] == '(' ? '{' : text[at] == ')' ? '}' : text[at];
            continue;
        }
        if (text.compare(at, 6, "{:uid}") == 0) {
            found += std::to_string(number);
            at += 5;
            continue;
        }
        const bool in_braces = text[at] == '{';
        if (in_braces) ++at;
        size_t index = 0, digits = 0;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9')
            index = index * 10 + (text[at++] - '0'), ++digits;
        if (!digits || index >= operands.size()) return "";
        found += operands[index];
        if (in_braces && (at >= text.size() || text[at] != '}')) return "";
        if (!in_braces) --at;
    }
    return found;
}

void Lowering::assembly(const Instruction &one) {
    const Value *callee = one.operands.back();
    const auto unknown = [&](const std::string &what) { refuse("assembly with " + what + ": " + callee->text); };
    const std::vector<ir::Leaf> leaves = ir::leaves_of(one.type);
    // What each output is written to; the kind is the letter's.
    std::vector<uint32_t> outputs;
    std::vector<std::string> texts;
    size_t next = 0;
    bool has_memory = false, has_clobber = false;
    for (std::string word : words_of(callee->constraints)) {
        if (word.empty()) continue;
        if (word.starts_with("~{")) {
            has_clobber = true, has_memory |= word == "~{memory}";
            continue;
        }
        if (word[0] == '=') {
            word.erase(0, word.starts_with("=&") ? 2 : 1);
            if (word.size() != 1 || std::string("bhrlfd").find(word[0]) == std::string::npos)
                unknown("the constraint '=" + word + "'");
            if (outputs.size() >= leaves.size()) unknown("more outputs than results");
            outputs.push_back(variable(register_of_letter(word[0])));
            texts.push_back(defined(outputs.back()));
            continue;
        }
        if (next + 1 >= one.operands.size()) unknown("more constraints than operands");
        const Value *operand = one.operands[next++];
        if (word[0] >= '0' && word[0] <= '9') {
            const size_t output = std::stoul(word);
            if (output >= outputs.size()) unknown("the constraint '" + word + "'");
            std::string value = this->operand(operand);
            if (register_of(operand->type) == Register::b32 && result_.variables[outputs[output]] == Register::b16)
                value = emit_to(Register::b16, "cvt.u16.u32", value);
            copy(defined(outputs[output]), result_.variables[outputs[output]], value, true);
            texts.push_back(use(outputs[output]));
            continue;
        }
        if (word == "n" || word == "i") {
            if (operand->kind != ValueKind::number && operand->kind != ValueKind::zero) unknown("'n' of no number");
            const std::string value = operand->kind == ValueKind::zero ? "0" : literal(operand->type, operand->bits);
            texts.push_back(value);
            continue;
        }
        if (word.size() != 1 || std::string("bhrlfd").find(word[0]) == std::string::npos)
            unknown("the constraint '" + word + "'");
        const Register kind = register_of_letter(word[0]);
        std::string value = this->operand(operand);
        if (kind == Register::b16 && register_of(operand->type) == Register::b32)
            value = emit_to(kind, "cvt.u16.u32", value);
        else if (kind != register_of(operand->type))
            unknown("an operand of type " + ir::to_string(operand->type) + " for '" + word + "'");
        if (value[0] != machine::kUse) {
            const uint32_t to = variable(kind);
            copy(defined(to), kind, value);
            value = use(to);
        }
        texts.push_back(value);
    }
    if (outputs.size() != leaves.size()) unknown("fewer outputs than results");
    std::string text = filled(callee->text, texts, static_cast<int>(into_->size()));
    if (text.empty() && !callee->text.empty()) unknown("an operand that is not understood");
    // Where an output is tied, its input's text is the same variable, read before it is written.
    if (!text.empty()) {
        machine::Operation &made = emit(std::move(text), Effect::other);
        made.is_assembly = true, made.reads_late = true;
        // Operands that the text does not name are read and written all the same.
        for (const uint32_t output : outputs)
            if (std::find(made.defined.begin(), made.defined.end(), output) == made.defined.end())
                made.defined.push_back(output);
        if (!has_memory && !has_clobber && one.result) made.effect = Effect::none;
    }
    Texts found;
    for (size_t i = 0; i < leaves.size(); ++i) {
        const std::string value = use(outputs[i]);
        const Register wanted = register_of(leaves[i].type), kind = result_.variables[outputs[i]];
        if (wanted == kind) {
            found.push_back(narrowed(leaves[i].type, value));
        } else if (kind == Register::b16 && wanted == Register::b32) {
            found.push_back(narrowed(leaves[i].type, emit_to(Register::b32, "cvt.u32.u16", value)));
        } else {
            unknown("a result of type " + ir::to_string(leaves[i].type));
        }
    }
    define(one, std::move(found));
}

}  // namespace compiler
