#include <algorithm>
#include <map>

#include "constants.h"
#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type, ir::Value, ir::ValueKind;
using machine::Effect, machine::Register;

static std::string space_name(unsigned space) {
    switch (space) {
        case global:
            return ".global";
        case shared:
            return ".shared";
        case constant:
            return ".const";
        case local:
            return ".local";
        case parameter:
            return ".param";
        default:
            return "";
    }
}

// ---- addresses ----

Address Lowering::address(const Value *value) {
    if (value->type->kind != Kind::pointer) refuse("an address of type " + ir::to_string(value->type));
    if (value->kind == ValueKind::local) {
        if (const auto &place = places_[value->index]) return *place;
        const Texts &found = texts_[value->index];
        if (found.size() != 1) refuse("a pointer %" + value->text + " without a value");
        return {is_shared_[value->index] ? unsigned(shared) : value->type->space, found[0], 0, false};
    }
    if (value->kind == ValueKind::global) {
        const auto found = module_.global_of.find(value);
        if (found == module_.global_of.end()) refuse("the variable @" + value->text + ", which is not declared");
        const unsigned space = found->second->space == generic ? unsigned(global) : found->second->space;
        return {space, symbols_[value->text], 0, true};
    }
    if (value->kind == ValueKind::function) refuse("the address of the function " + value->text);
    if (value->kind == ValueKind::zero || value->kind == ValueKind::undefined)
        return {value->type->space, "0", 0, false};
    if (value->kind != ValueKind::expression) refuse("a pointer that is a constant of an unknown kind");
    const Value *of = value->operands.at(0);
    if (value->text == "addrspacecast") {
        Address found = address(of);
        if (found.is_symbol) return found;
        return {value->type->space, pointer(found, value->type->space), 0, false};
    }
    if (value->text == "getelementptr") return element_address(value->source_type, value->operands);
    if (value->text == "inttoptr")
        return {value->type->space, integer_width(operand(of), of->type->bits, 64, false), 0, false};
    refuse("the constant expression '" + value->text + "' of a pointer");
}

std::string Lowering::place(const Address &at, int64_t more) const {
    const int64_t offset = at.offset + more;
    return format("[{}{}{}]", at.base, offset > 0 ? "+" : "", offset ? std::to_string(offset) : "");
}

std::string Lowering::pointer(const Address &at, unsigned space) {
    std::string found = at.base;
    if (at.is_symbol) found = emit_to(Register::b64, "mov.b64", at.base);
    // The address of a parameter is a number of its own space, too.
    if (at.offset) found = emit_to(Register::b64, "add.s64", format("{}, {}", found, at.offset));
    if (at.space == space) return found;
    if (found == "0" && !at.is_symbol) found = emit_to(Register::b64, "mov.b64", found);
    if (space == generic) return emit_to(Register::b64, "cvta" + space_name(at.space) + ".u64", found);
    if (at.space == generic) return emit_to(Register::b64, "cvta.to" + space_name(space) + ".u64", found);
    refuse(format("a pointer of address space {} as one of {}", at.space, space));
}

// Constant parts of the indices become the offset, the others are added to the base.
Address Lowering::element_address(const Type *type, const std::vector<Value *> &all) {
    Address found = address(all[0]);
    std::string sum;
    for (size_t i = 1; i < all.size(); ++i) {
        const Value *index = all[i];
        uint64_t stride;
        if (i > 1 && type->kind == Kind::structure) {
            found.offset += static_cast<int64_t>(ir::offset_of(type, index->bits));
            type = type->element(index->bits);
            continue;
        }
        if (i > 1) type = type->element(0);
        stride = ir::size_of(type);
        if (index->kind == ValueKind::number) {
            found.offset += sign_extended(index->bits, index->type->bits) * static_cast<int64_t>(stride);
        } else if (index->kind != ValueKind::zero && index->kind != ValueKind::undefined) {
            std::string term = integer_width(operand(index), index->type->bits, 64, true);
            if (stride != 1) {
                const bool power = (stride & (stride - 1)) == 0;
                term = power ? emit_to(Register::b64, "shl.b64", format("{}, {}", term, __builtin_ctzll(stride)))
                             : emit_to(Register::b64, "mul.lo.s64", format("{}, {}", term, stride));
            }
            sum = sum.empty() ? term : emit_to(Register::b64, "add.s64", sum + ", " + term);
        }
    }
    if (sum.empty()) return found;
    if (found.space == parameter || found.space == constant || found.space == global) {
        const unsigned space = all[0]->type->space;  // symbols of these spaces are rare: by their generic address
        found = {space, pointer(found, space), 0, false};
    } else if (found.is_symbol) {
        const int64_t offset = found.offset;
        found.base = emit_to(Register::b64, "mov.b64", found.base);
        found = {found.space, found.base, offset, false};
    }
    found.base = emit_to(Register::b64, "add.s64", found.base + ", " + sum);
    return found;
}

void Lowering::element_address(const Instruction &one) {
    if (one.type->kind != Kind::pointer) refuse("addresses of type " + ir::to_string(one.type));
    places_[one.result->index] = element_address(one.source_type, one.operands);
}

// ---- loads and stores ----

std::string Lowering::load_leaf(const std::string &how, const Address &at, const ir::Leaf &leaf, uint64_t alignment,
                                bool mergeable) {
    const Register kind = register_of(leaf.type);
    const unsigned bits = static_cast<unsigned>(8 * ir::size_of(leaf.type));
    if (leaf.type->bits != bits && leaf.type->bits != 1) refuse("a load of " + ir::to_string(leaf.type));
    if (kind == Register::predicate) {
        static const Type byte{.kind = Kind::integer, .bits = 8};
        return predicate_of(load_leaf(how, at, {&byte, leaf.offset}, alignment, mergeable));
    }
    const uint32_t to = variable(kind);
    const std::string name = how + space_name(at.space);
    const std::string written = machine::kDefinition + std::to_string(to) + machine::kEnd;
    const int64_t offset = static_cast<int64_t>(leaf.offset);
    machine::Operation &load = emit(format("{}.b{} {}, {}", name, bits, written, place(at, offset)), Effect::load);
    if (at.space == parameter) load.effect = Effect::none;
    if (mergeable && at.space != parameter) load.access = {name, at.base, at.offset + offset, bits, alignment, written};
    return use(to);
}

void Lowering::store_leaf(const std::string &how, const Address &at, const ir::Leaf &leaf, std::string value,
                          uint64_t alignment, bool mergeable) {
    const unsigned bits = static_cast<unsigned>(8 * ir::size_of(leaf.type));
    if (leaf.type->bits != bits && leaf.type->bits != 1) refuse("a store of " + ir::to_string(leaf.type));
    if (register_of(leaf.type) == Register::predicate) value = number_of(value);
    const std::string name = how + space_name(at.space);
    const int64_t offset = static_cast<int64_t>(leaf.offset);
    machine::Operation &store = emit(format("{}.b{} {}, {}", name, bits, place(at, offset), value), Effect::store);
    if (mergeable) store.access = {name, at.base, at.offset + offset, bits, alignment, value};
}

static uint64_t known_alignment(uint64_t alignment, uint64_t offset) {
    return offset ? std::min(alignment, offset & -offset) : alignment;
}

std::string Lowering::scope(const Instruction &one) const {
    static const std::map<std::string_view, std::string> scopes = {
        {"", ".sys"},       {"singlethread", ".cta"}, {"block", ".cta"}, {"workgroup", ".cta"}, {"cluster", ".cluster"},
        {"device", ".gpu"}, {"agent", ".gpu"},        {"system", ".sys"}};
    const auto found = scopes.find(one.syncscope);
    if (found == scopes.end()) refuse("the scope '" + one.syncscope + "'");
    return found->second;
}

// "ld", "ld.volatile", "ld.acquire.gpu"; a fence before what is seq_cst.
std::string Lowering::access_words(const Instruction &one) {
    const bool is_load = one.opcode == "load";
    const std::string name = is_load ? "ld" : "st";
    if (!one.is_atomic) return one.is_volatile ? name + ".volatile" : name;
    if (one.is_volatile && one.ordering == "monotonic") return name + ".volatile";
    if (one.ordering == "monotonic" || one.ordering == "unordered") return name + ".relaxed" + scope(one);
    if (one.ordering == "seq_cst") emit("fence.sc" + scope(one), Effect::other);
    return name + (is_load ? ".acquire" : ".release") + scope(one);
}

void Lowering::load(const Instruction &one) {
    const Address at = address(one.operands[0]);
    const std::string how = access_words(one);
    const bool plain = how == "ld";
    const uint64_t alignment = one.alignment ? one.alignment : ir::alignment_of(one.type);
    Texts found;
    for (const ir::Leaf &leaf : ir::leaves_of(one.type)) {
        const uint64_t known = known_alignment(alignment, leaf.offset);
        if (known < ir::size_of(leaf.type)) refuse("a load that is not aligned");
        found.push_back(load_leaf(how, at, leaf, known, plain));
        if (!plain) into_->back().effect = Effect::other;
    }
    define(one, std::move(found));
}

void Lowering::store(const Instruction &one) {
    if (one.operands[0]->kind == ValueKind::undefined) return;
    const Texts values = operands(one.operands[0]);
    const Address at = address(one.operands[1]);
    const std::string how = access_words(one);
    const bool plain = how == "st";
    const uint64_t alignment = one.alignment ? one.alignment : ir::alignment_of(one.type);
    const std::vector<ir::Leaf> leaves = ir::leaves_of(one.type);
    for (size_t i = 0; i < leaves.size(); ++i) {
        const uint64_t known = known_alignment(alignment, leaves[i].offset);
        if (known < ir::size_of(leaves[i].type)) refuse("a store that is not aligned");
        store_leaf(how, at, leaves[i], values[i], known, plain);
        if (!plain) into_->back().effect = Effect::other;
    }
}

// ---- atomic operations ----

static std::string atomic_order(const std::string &ordering) {
    if (ordering == "monotonic") return ".relaxed";
    if (ordering == "seq_cst") return ".acquire";  // behind a fence
    return "." + ordering;
}

void Lowering::atomic(const Instruction &one) {
    struct Form {
        const char *word, *kinds;  // kinds: of a type's letter, which of u32, u64, ... it is
    };
    static const std::map<std::string_view, Form> forms = {
        {"xchg", {"exch", "b"}}, {"add", {"add", "u"}},  {"and", {"and", "b"}},       {"or", {"or", "b"}},
        {"xor", {"xor", "b"}},   {"max", {"max", "s"}},  {"min", {"min", "s"}},       {"umax", {"max", "u"}},
        {"umin", {"min", "u"}},  {"fadd", {"add", "f"}}, {"uinc_wrap", {"inc", "u"}}, {"udec_wrap", {"dec", "u"}},
        {"sub", {"add", "u"}}};
    const auto form = forms.find(one.detail);
    const Type *type = one.type;
    if (form == forms.end() || (type->bits != 32 && type->bits != 64))
        refuse("atomicrmw " + one.detail + " of " + ir::to_string(type));
    const Address at = address(one.operands[0]);
    std::string value = operand(one.operands[1]);
    const Register kind = register_of(type);
    if (one.detail == "sub") value = emit_to(kind, format("neg.s{}", type->bits), value);
    if (one.ordering == "seq_cst") emit("fence.sc" + scope(one), Effect::other);
    std::string kinds = form->second.kinds;
    if (one.detail == "xchg" && type->is_float()) kinds = "b";
    const uint32_t to = variable(kind);
    const std::string words = atomic_order(one.ordering) + scope(one) + space_name(at.space) + "." + form->second.word +
                              format(".{}{}", kinds, type->bits);
    const bool is_used = one.result && uses_[one.result->index];
    if (!is_used && one.detail != "xchg" && one.detail != "uinc_wrap" && one.detail != "udec_wrap" &&
        one.ordering == "monotonic") {
        emit(format("red{} {}, {}", words, place(at), value), Effect::other);
    } else {
        emit(format("atom{} {}{}{}, {}, {}", words, machine::kDefinition, to, machine::kEnd, place(at), value),
             Effect::other);
    }
    define(one, {use(to)});
}

void Lowering::compare_and_swap(const Instruction &one) {
    const Type *type = one.operands[1]->type;
    if (type->bits != 32 && type->bits != 64) refuse("cmpxchg of " + ir::to_string(type));
    const Address at = address(one.operands[0]);
    const std::string expected = operand(one.operands[1]), value = operand(one.operands[2]);
    if (one.detail == "seq_cst") emit("fence.sc" + scope(one), Effect::other);
    const uint32_t to = variable(register_of(type));
    emit(format("atom{}{}{}.cas.b{} {}{}{}, {}, {}, {}", atomic_order(one.detail), scope(one), space_name(at.space),
                type->bits, machine::kDefinition, to, machine::kEnd, place(at), expected, value),
         Effect::other);
    define(one, {use(to), compare_integers("eq", type, use(to), expected)});
}

void Lowering::fence(const Instruction &one) {
    if (one.ordering == "seq_cst") {
        emit("fence.sc" + scope(one), Effect::other);
    } else {
        emit("fence.acq_rel" + scope(one), Effect::other);
    }
}

// ---- blocks of bytes ----

Address Lowering::local_bytes(uint64_t bytes, uint64_t alignment) {
    const uint64_t offset = (result_.local_bytes + alignment - 1) / alignment * alignment;
    result_.local_bytes = offset + bytes;
    result_.local_alignment = std::max(result_.local_alignment, alignment);
    return {local, "$local", static_cast<int64_t>(offset), true};
}

void Lowering::allocate(const Instruction &one) {
    if (into_ != &result_.blocks[position_[order_[0]->index]].operations) refuse("an alloca in a loop or a branch");
    if (one.type->space != generic) refuse("an alloca in an address space of its own");
    const uint64_t alignment = std::max(one.alignment, ir::alignment_of(one.source_type));
    places_[one.result->index] = local_bytes(ir::size_of(one.source_type), alignment);
}

// overlapping: all is read before anything is written.
void Lowering::copy_bytes(const Address &to, const Address &from, uint64_t bytes, uint64_t alignment,
                          bool overlapping) {
    std::vector<std::function<void()>> stores;
    static const Type types[] = {{.kind = Kind::integer, .bits = 8},
                                 {.kind = Kind::integer, .bits = 16},
                                 {.kind = Kind::integer, .bits = 32},
                                 {.kind = Kind::integer, .bits = 64}};
    for (uint64_t at = 0; at < bytes;) {
        // Pieces as wide as the alignment allows: of 16 bytes four words.
        uint64_t piece = std::min<uint64_t>(alignment, 16);
        while (piece > bytes - at) piece /= 2;
        const uint64_t element = piece == 16 ? 4 : piece;
        const Type &type = types[__builtin_ctzll(element)];
        std::vector<std::string> values;
        for (uint64_t part = 0; part < piece; part += element)
            values.push_back(load_leaf("ld", from, {&type, at + part}, known_alignment(piece, part), true));
        stores.push_back([=, this, &to, &type] {
            for (uint64_t part = 0; part < piece; part += element)
                store_leaf("st", to, {&type, at + part}, values[part / element], known_alignment(piece, part), true);
        });
        at += piece;
        if (overlapping && at < bytes) continue;
        for (const auto &store : stores) store();
        stores.clear();
    }
}

constexpr uint64_t kMostBytes = 1024;  // of a copy that is written out

void Lowering::copy_memory(const Instruction &one) {
    const Value *bytes = one.operands[2];
    if (bytes->kind != ValueKind::number || bytes->bits > kMostBytes)
        refuse(format("a copy of memory of a size that is not known, or beyond {} bytes", kMostBytes));
    if (one.operands[3]->bits) refuse("a copy of volatile memory");
    const uint64_t alignment = std::min(one.indices.at(0), one.indices.at(1));
    const bool overlapping = one.operands.back()->text.starts_with("llvm.memmove");
    if (overlapping && bytes->bits > 128) refuse("a copy of more than 128 bytes that may overlap");
    copy_bytes(address(one.operands[0]), address(one.operands[1]), bytes->bits, alignment, overlapping);
}

void Lowering::set_memory(const Instruction &one) {
    const Value *bytes = one.operands[2], *value = one.operands[1];
    if (bytes->kind != ValueKind::number || bytes->bits > kMostBytes || value->kind != ValueKind::number)
        refuse(format("memory set to a value or of a size that is not known, or beyond {} bytes", kMostBytes));
    const Address to = address(one.operands[0]);
    const uint64_t alignment = std::min<uint64_t>(one.indices.at(0), 4);
    for (uint64_t at = 0; at < bytes->bits;) {
        uint64_t piece = alignment;
        while (piece > bytes->bits - at) piece /= 2;
        const Type type{.kind = Kind::integer, .bits = static_cast<unsigned>(8 * piece)};
        const uint64_t pattern = lowest(value->bits * 0x01010101u, type.bits);
        store_leaf("st", to, {&type, at}, literal(&type, pattern), known_alignment(one.indices.at(0), at), true);
        at += piece;
    }
}

}  // namespace compiler
