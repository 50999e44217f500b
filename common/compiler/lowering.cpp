#include "lowering.h"

#include <algorithm>

#include "constants.h"
#include "debug_lines.h"
#include "errors.h"
#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type, ir::Value, ir::ValueKind;
using machine::Effect, machine::Operation, machine::Register;

void Lowering::refuse(const std::string &what) const {
    std::string where = source_line(module_, debug_);
    if (where.empty()) where = "in " + function_.name;
    throw Refusal(where + ": " + what);
}

// ---- variables and operations ----

uint32_t Lowering::variable(Register kind) {
    result_.variables.push_back(kind);
    return static_cast<uint32_t>(result_.variables.size() - 1);
}

std::string Lowering::use(uint32_t variable) {
    return machine::kUse + std::to_string(variable) + machine::kEnd;
}

static std::string definition(uint32_t variable) {
    return machine::kDefinition + std::to_string(variable) + machine::kEnd;
}

Operation &Lowering::emit(std::string text, Effect effect) {
    Operation one = machine::operation(std::move(text));
    one.effect = effect;
    one.debug = debug_;
    into_->push_back(std::move(one));
    return into_->back();
}

std::string Lowering::emit_to(Register kind, const std::string &instruction, const std::string &operands) {
    const uint32_t to = variable(kind);
    emit(instruction + " " + definition(to) + ", " + operands);
    return use(to);
}

Register Lowering::register_of(const Type *type) const {
    switch (type->kind) {
        case Kind::integer:
            if (type->bits > 64) refuse("an integer of " + std::to_string(type->bits) + " bits");
            return type->bits == 1 ? Register::predicate : type->bits <= 32 ? Register::b32 : Register::b64;
        case Kind::half:
        case Kind::bfloat:
            return Register::b16;
        case Kind::single:
            return Register::f32;
        case Kind::real:
            return Register::f64;
        case Kind::pointer:
            return Register::b64;
        default:
            refuse("a value of type " + ir::to_string(type));
    }
}

std::string Lowering::literal(const Type *type, uint64_t bits) const {
    switch (register_of(type)) {
        case Register::f32:
            return "0f" + digits(bits, 8);
        case Register::f64:
            return "0d" + digits(bits, 16);
        case Register::b16:
            return "0x" + digits(bits, 4);
        case Register::predicate:
            return std::to_string(bits);
        default:
            return type->bits == 32 || type->bits == 64 ? std::to_string(sign_extended(bits, type->bits))
                                                        : std::to_string(bits);
    }
}

void Lowering::constant_leaves(const Value *value, Texts &found) {
    const Type *type = value->type;
    if (value->kind == ValueKind::aggregate) {
        for (const Value *one : value->operands) constant_leaves(one, found);
    } else if (value->kind == ValueKind::bytes) {
        for (const char c : value->text) found.push_back(std::to_string(static_cast<unsigned char>(c)));
    } else if (value->kind == ValueKind::number) {
        found.push_back(literal(type, value->bits));
    } else if (value->kind == ValueKind::zero || value->kind == ValueKind::undefined) {
        for (const ir::Leaf &leaf : ir::leaves_of(type)) found.push_back(literal(leaf.type, 0));
    } else if (type->kind == Kind::pointer) {
        found.push_back(pointer(address(value), type->space));
    } else if (value->kind == ValueKind::expression && (value->text == "ptrtoint" || value->text == "ptrtoaddr")) {
        const Value *of = value->operands.at(0);
        found.push_back(integer_width(pointer(address(of), of->type->space), 64, type->bits, false));
    } else if (value->kind == ValueKind::expression && value->operands.size() == 2) {
        Instruction one;
        one.opcode = value->text;
        found.push_back(binary(one, type, operand(value->operands[0]), operand(value->operands[1])));
    } else if (value->kind == ValueKind::expression && value->text == "trunc") {
        found.push_back(convert("trunc", value->operands[0]->type, type, operand(value->operands[0])));
    } else {
        refuse("a constant of kind '" + value->text + "'");
    }
}

Lowering::Texts Lowering::operands(const Value *value) {
    if (value->kind == ValueKind::local) {
        if (value->type->kind == Kind::pointer) return {pointer(address(value), value->type->space)};
        const Texts &found = texts_[value->index];
        if (found.empty() && !ir::leaves_of(value->type).empty()) refuse("a value %" + value->text + " without one");
        return found;
    }
    Texts found;
    constant_leaves(value, found);
    if (value->kind == ValueKind::number || value->kind == ValueKind::zero || value->kind == ValueKind::undefined ||
        value->kind == ValueKind::aggregate) {
        const std::vector<ir::Leaf> leaves = ir::leaves_of(value->type);
        for (size_t i = 0; i < leaves.size(); ++i) {
            const Register kind = register_of(leaves[i].type);
            if (found[i][0] == machine::kUse) continue;
            if (kind == Register::b16) found[i] = emit_to(kind, "mov.b16", found[i]);
            if (kind == Register::predicate) found[i] = emit_to(kind, "setp.ne.s32", found[i] + ", 0");
        }
    }
    return found;
}

std::string Lowering::operand(const Value *value) {
    const Texts found = operands(value);
    if (found.size() != 1) refuse("a value of type " + ir::to_string(value->type) + " here");
    return found[0];
}

void Lowering::define(const Instruction &one, Texts texts) {
    if (one.result) texts_[one.result->index] = std::move(texts);
}

void Lowering::copy(const std::string &to, Register kind, const std::string &from, bool tied) {
    static const char *const words[] = {"mov.pred ", "mov.b16 ", "mov.b32 ", "mov.b64 ", "mov.f32 ", "mov.f64 "};
    Operation &one = emit(words[static_cast<int>(kind)] + to + ", " + from);
    one.is_copy = one.used.size() == 1;
    one.is_tied = tied;
}

// ---- control ----

// Blocks in an order in which each stands behind those that dominate it.
void Lowering::order_blocks() {
    std::vector<char> seen(function_.blocks.size());
    const auto successors = [](const ir::Block &block) -> const std::vector<ir::Block *> & {
        return block.instructions.back().blocks;
    };
    for (const ir::Block &block : function_.blocks)
        if (block.instructions.empty()) refuse("a block without an instruction");
    std::vector<std::pair<const ir::Block *, size_t>> stack = {{&function_.blocks[0], 0}};
    seen[0] = true;
    while (!stack.empty()) {
        auto &[block, next] = stack.back();
        if (next < successors(*block).size()) {
            const ir::Block *to = successors(*block)[next++];
            if (!seen[to->index]) seen[to->index] = true, stack.emplace_back(to, 0);
        } else {
            order_.push_back(block);
            stack.pop_back();
        }
    }
    std::reverse(order_.begin(), order_.end());
    position_.assign(function_.blocks.size(), -1);
    int position = 0;
    for (const ir::Block &block : function_.blocks)
        if (seen[block.index]) position_[block.index] = position++;
}

// The space of what a generic pointer is known to point to so far; empty: nothing is known yet.
std::optional<unsigned> Lowering::space_of(const Value *value) const {
    if (value->type->space != generic) return value->type->space;
    switch (value->kind) {
        case ValueKind::local:
            return is_shared_[value->index] ? std::optional<unsigned>(shared) : generic;
        case ValueKind::global:
            return module_.global_of.contains(value) ? module_.global_of.at(value)->space : generic;
        case ValueKind::undefined:
            return {};
        case ValueKind::expression:
            if (value->text == "addrspacecast" || value->text == "getelementptr") return space_of(value->operands[0]);
            return generic;
        default:
            return generic;
    }
}

// Starts from all that may be, and takes away what is not, until nothing changes.
void Lowering::find_shared_pointers() {
    is_shared_.assign(function_.locals, false);
    for (const ir::Block *block : order_)
        for (const Instruction &one : block->instructions)
            if (one.result && one.type->kind == Kind::pointer && one.type->space == generic)
                is_shared_[one.result->index] = one.opcode == "phi" || one.opcode == "select" ||
                                                one.opcode == "freeze" || one.opcode == "getelementptr" ||
                                                one.opcode == "addrspacecast";
    for (bool changed = true; changed;) {
        changed = false;
        for (const ir::Block *block : order_)
            for (const Instruction &one : block->instructions) {
                if (!one.result || !is_shared_[one.result->index]) continue;
                const size_t first = one.opcode == "select" ? 1 : 0;
                const size_t last = one.opcode == "phi" || one.opcode == "select" ? one.operands.size() : 1;
                bool is_shared = true;
                for (size_t i = first; i < last; ++i) {
                    const auto space = space_of(one.operands[i]);
                    is_shared &= !space || *space == shared;
                }
                if (!is_shared) is_shared_[one.result->index] = false, changed = true;
            }
    }
}

// Parameters to variables; those that a kernel has by value stay where they are, unless it may write them.
void Lowering::prologue() {
    const std::string name = symbols_[function_.name];
    for (size_t i = 0; i < function_.parameters.size(); ++i) {
        const ir::Parameter &one = function_.parameters[i];
        const Address place{parameter, format("{}_param_{}", name, i), 0, true};
        const unsigned index = one.value->index;
        if (one.byval && function_.is_kernel) {
            places_[index] = place;
            if (one.readonly || one.grid_constant) continue;
            const uint64_t alignment = std::max(one.alignment, ir::alignment_of(one.byval));
            places_[index] = local_bytes(ir::size_of(one.byval), alignment);
            copy_bytes(*places_[index], place, ir::size_of(one.byval), alignment);
            continue;
        }
        Texts found;
        for (const ir::Leaf &leaf : ir::leaves_of(one.value->type)) {
            const bool widened = !function_.is_kernel && leaf.type->kind == Kind::integer && leaf.type->bits < 32 &&
                                 one.value->type == leaf.type;
            if (!widened) {
                found.push_back(load_leaf("ld", place, leaf, ir::alignment_of(leaf.type), false));
            } else {
                const std::string word = emit_to(Register::b32, "ld.param.b32", this->place(place));
                found.push_back(leaf.type->bits == 1 ? predicate_of(word) : narrowed(leaf.type, word));
            }
        }
        texts_[index] = std::move(found);
    }
}

// What a phi is was written by each block before; it is read at the begin of this one, before anything is written.
void Lowering::begin_phi(const Instruction &one) {
    Phi phi{&one, {}};
    Texts found;
    for (const ir::Leaf &leaf : ir::leaves_of(one.type)) {
        const Register kind = register_of(leaf.type);
        phi.arrivals.push_back(variable(kind));
        const uint32_t own = variable(kind);
        copy(definition(own), kind, use(phi.arrivals.back()));
        found.push_back(use(own));
    }
    define(one, std::move(found));
    phis_.push_back(std::move(phi));
}

void Lowering::end_phis() {
    for (const Phi &phi : phis_) {
        const Instruction &one = *phi.instruction;
        std::vector<const ir::Block *> done;
        for (size_t i = 0; i < one.operands.size(); ++i) {
            const ir::Block *from = one.blocks[i];
            if (position_[from->index] < 0 || std::find(done.begin(), done.end(), from) != done.end()) continue;
            done.push_back(from);
            into_ = &result_.blocks[position_[from->index]].operations;
            debug_ = from->instructions.back().debug;
            const bool is_shared = one.type->kind == Kind::pointer && is_shared_[one.result->index];
            const bool undefined = one.operands[i]->kind == ValueKind::undefined;
            const Texts values = is_shared && undefined ? Texts{"0"}
                                 : is_shared            ? Texts{pointer(address(one.operands[i]), shared)}
                                                        : operands(one.operands[i]);
            for (size_t leaf = 0; leaf < values.size(); ++leaf)
                copy(definition(phi.arrivals[leaf]), result_.variables[phi.arrivals[leaf]], values[leaf]);
        }
    }
}

void Lowering::give_back(const Instruction &one) {
    if (function_.is_kernel || one.operands.empty()) {
        emit("ret", Effect::other);
        return;
    }
    const Type *type = one.operands[0]->type;
    const Texts values = operands(one.operands[0]);
    const std::vector<ir::Leaf> leaves = ir::leaves_of(type);
    const Address place{parameter, "result", 0, true};
    for (size_t i = 0; i < leaves.size(); ++i) {
        if (leaves[i].type == type && leaves[i].type->kind == Kind::integer && leaves[i].type->bits < 32) {
            const std::string word = leaves[i].type->bits == 1 ? number_of(values[i]) : values[i];
            emit("st.param.b32 [result], " + word, Effect::other);
        } else {
            store_leaf("st", place, leaves[i], values[i], ir::alignment_of(leaves[i].type), false);
        }
    }
    emit("ret", Effect::other);
}

void Lowering::terminator(const Instruction &one) {
    const auto label = [&](const ir::Block *to) { return result_.blocks[position_[to->index]].label; };
    if (one.opcode == "ret") {
        give_back(one);
    } else if (one.opcode == "unreachable") {
        emit("trap", Effect::other);
        emit("exit", Effect::other);
    } else if (one.opcode == "br" && one.blocks.size() == 1) {
        emit("bra " + label(one.blocks[0]), Effect::other);
    } else if (one.opcode == "br") {
        emit("@" + operand(one.operands[0]) + " bra " + label(one.blocks[0]), Effect::other);
        emit("bra " + label(one.blocks[1]), Effect::other);
    } else if (one.opcode == "switch") {
        const Type *type = one.operands[0]->type;
        const std::string value = operand(one.operands[0]);
        for (size_t i = 1; i < one.operands.size(); ++i) {
            const std::string is_it = compare_integers("eq", type, value, operand(one.operands[i]));
            emit("@" + is_it + " bra " + label(one.blocks[i]), Effect::other);
        }
        emit("bra " + label(one.blocks[0]), Effect::other);
    } else {
        refuse("the instruction '" + one.opcode + "' at the end of a block");
    }
}

void Lowering::instruction(const Instruction &one) {
    const std::string &opcode = one.opcode;
    if (opcode == "load") return load(one);
    if (opcode == "store") return store(one);
    if (opcode == "getelementptr") return element_address(one);
    if (opcode == "call") return call(one);
    if (opcode == "alloca") return allocate(one);
    if (opcode == "atomicrmw") return atomic(one);
    if (opcode == "cmpxchg") return compare_and_swap(one);
    if (opcode == "fence") return fence(one);
    if (opcode == "extractelement" || opcode == "insertelement" || opcode == "shufflevector")
        return vector_element(one);
    if (opcode == "addrspacecast") {
        const unsigned to = is_shared_[one.result->index] ? unsigned(shared) : one.type->space;
        return define(one, {pointer(address(one.operands[0]), to)});
    }
    if (opcode == "extractvalue" || opcode == "insertvalue") {
        const Type *type = one.operands[0]->type;
        size_t first = 0;
        for (const uint64_t index : one.indices) {
            first += ir::first_leaf(type, index);
            type = type->element(index);
        }
        Texts all = operands(one.operands[0]);
        if (opcode == "extractvalue") {
            const size_t count = ir::leaves_of(type).size();
            return define(one, Texts(all.begin() + first, all.begin() + first + count));
        }
        const Texts part = operands(one.operands[1]);
        std::copy(part.begin(), part.end(), all.begin() + first);
        return define(one, std::move(all));
    }
    if (opcode == "freeze" && one.type->kind != Kind::pointer) return define(one, operands(one.operands[0]));
    if (opcode == "freeze")
        return define(one, {pointer(address(one.operands[0]),
                                    is_shared_[one.result->index] ? unsigned(shared) : one.type->space)});
    if (opcode == "bitcast") {
        const Type *from = one.operands[0]->type;
        return define(one, bitcast(from, one.type, operands(one.operands[0])));
    }
    elementwise(one);
}

void Lowering::lower_block(const ir::Block &block) {
    machine::Block &to = result_.blocks[position_[block.index]];
    into_ = &to.operations;
    if (&block == order_[0]) prologue();
    for (const Instruction &one : block.instructions) {
        debug_ = one.debug;
        if (one.opcode == "phi") {
            begin_phi(one);
        } else if (&one == &block.instructions.back()) {
            for (const ir::Block *next : one.blocks) to.successors.push_back(position_[next->index]);
            into_ = &ends_[position_[block.index]];
            terminator(one);
        } else if (!one.blocks.empty() || one.opcode == "ret" || one.opcode == "unreachable") {
            refuse("the instruction '" + one.opcode + "' in the middle of a block");
        } else {
            instruction(one);
        }
    }
}

machine::Function Lowering::run() {
    result_.debug = function_.debug;
    if (const auto mode = function_.attributes.find("denormal-fp-math-f32"); mode != function_.attributes.end())
        flushes_ = mode->second.starts_with("preserve-sign");
    if (function_.attributes.contains("denormal_fpenv")) refuse("the attribute denormal_fpenv");
    order_blocks();
    texts_.resize(function_.locals);
    places_.resize(function_.locals);
    maker_.resize(function_.locals);
    uses_.assign(function_.locals, 0);
    for (const ir::Block *block : order_)
        for (const Instruction &one : block->instructions) {
            if (one.result) maker_[one.result->index] = &one;
            for (const Value *operand : one.operands)
                if (operand->kind == ValueKind::local) ++uses_[operand->index];
        }
    find_shared_pointers();
    result_.blocks.resize(order_.size());
    ends_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) result_.blocks[i].label = "$" + std::to_string(i);
    for (const ir::Block *block : order_) lower_block(*block);
    end_phis();
    for (size_t i = 0; i < order_.size(); ++i) {
        auto &all = result_.blocks[i].operations;
        all.insert(all.end(), std::make_move_iterator(ends_[i].begin()), std::make_move_iterator(ends_[i].end()));
    }
    return std::move(result_);
}

machine::Function lower(const ir::Module &module, const ir::Function &function, const Symbols &symbols,
                        std::vector<const ir::Function *> &called) {
    return Lowering(module, function, symbols, called).run();
}

std::string parameter_declaration(const Type *type, uint64_t alignment, bool of_kernel, const std::string &name) {
    if (type->is_aggregate()) {
        return format(".param .align {} .b8 {}[{}]", std::max(alignment, ir::alignment_of(type)), name,
                      ir::size_of(type));
    }
    const bool widened = !of_kernel && type->kind == Kind::integer && type->bits < 32;
    return format(".param .b{} {}", widened ? 32 : 8 * ir::size_of(type), name);
}

}  // namespace compiler
