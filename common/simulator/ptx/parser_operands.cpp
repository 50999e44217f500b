#include <algorithm>

#include "ptx/parser_impl.h"

namespace warpsim::ptx {
namespace {

constexpr size_t kMaxVectorElements = 1024;

struct SpecialRegister {
    std::string_view name;
    Type type;
};
constexpr SpecialRegister kSpecialRegisters[] = {
    {"%tid", Type::u32},
    {"%ntid", Type::u32},
    {"%laneid", Type::u32},
    {"%warpid", Type::u32},
    {"%nwarpid", Type::u32},
    {"%ctaid", Type::u32},
    {"%nctaid", Type::u32},
    {"%smid", Type::u32},
    {"%nsmid", Type::u32},
    {"%gridid", Type::u64},
    {"%is_explicit_cluster", Type::pred},
    {"%clusterid", Type::u32},
    {"%nclusterid", Type::u32},
    {"%cluster_ctaid", Type::u32},
    {"%cluster_nctaid", Type::u32},
    {"%cluster_ctarank", Type::u32},
    {"%cluster_nctarank", Type::u32},
    {"%lanemask_eq", Type::u32},
    {"%lanemask_le", Type::u32},
    {"%lanemask_lt", Type::u32},
    {"%lanemask_ge", Type::u32},
    {"%lanemask_gt", Type::u32},
    {"%clock", Type::u32},
    {"%clock_hi", Type::u32},
    {"%clock64", Type::u64},
    {"%globaltimer", Type::u64},
    {"%globaltimer_lo", Type::u32},
    {"%globaltimer_hi", Type::u32},
    {"%reserved_smem_offset_begin", Type::b32},
    {"%reserved_smem_offset_end", Type::b32},
    {"%reserved_smem_offset_cap", Type::b32},
    {"%reserved_smem_offset_0", Type::b32},
    {"%reserved_smem_offset_1", Type::b32},
    {"%total_smem_size", Type::u32},
    {"%aggr_smem_size", Type::u32},
    {"%dynamic_smem_size", Type::u32},
    {"%current_graph_exec", Type::u64},
    // Families: a number may follow (%pm0, %pm3_64, %envreg31).
    {"%pm", Type::u32},
    {"%pm_", Type::u64},
    {"%envreg", Type::b32},
};

// none: no special register.
Type special_register(std::string_view name) {
    std::string family(name);
    if (name.starts_with("%pm") || name.starts_with("%envreg"))
        std::erase_if(family, [](char c) { return c >= '0' && c <= '9'; });
    for (const SpecialRegister &special : kSpecialRegisters)
        if (special.name == family) return special.type;
    return Type::none;
}

int component_index(std::string_view word) {
    constexpr std::string_view kByPosition = "xyzw", kByColor = "rgba";
    if (word.size() != 1) return -1;
    const size_t index = std::min(kByPosition.find(word[0]), kByColor.find(word[0]));
    return index == std::string_view::npos ? -1 : static_cast<int>(index);
}

// "b3210", "h10"
bool is_selector(std::string_view word) {
    return word.size() > 1 && (word[0] == 'b' || word[0] == 'h') &&
           word.find_first_not_of("01234567", 1) == std::string_view::npos;
}

}  // namespace

uint32_t Parser::add_register(std::string name, Type type, int vector) {
    function_->registers.push_back({std::move(name), type, vector});
    return static_cast<uint32_t>(function_->registers.size() - 1);
}

// Sets operand to the register of that name, declared alone or as one of a range, whichever is in the inner scope.
bool Parser::find_register(std::string_view name, Operand &operand) {
    const Scopes::Entry *best = registers_.find(name);
    uint32_t depth = best ? best->depth : 0, index = best ? best->index : 0;
    bool found = best != nullptr;
    // %f12 may be number 12 of %f or number 2 of %f1.
    uint64_t number = 0, scale = 1;
    for (size_t digits = 1; digits < name.size() && digits <= 10; ++digits, scale *= 10) {
        const char c = name[name.size() - digits];
        if (c < '0' || c > '9') break;
        number += scale * static_cast<uint64_t>(c - '0');
        if (c == '0' && digits > 1) continue;  // no leading zeros
        const Scopes::Entry *entry = ranges_.find(name.substr(0, name.size() - digits));
        if (!entry || entry->depth <= depth || number >= register_ranges_[entry->index].count || number > UINT32_MAX)
            continue;
        RegisterRange &range = register_ranges_[entry->index];
        const auto [used, is_new] = range.used.try_emplace(static_cast<uint32_t>(number), 0);
        if (is_new) used->second = add_register(std::string(name), range.type, range.vector);
        index = used->second, depth = entry->depth, found = true;
    }
    if (!found) return false;
    operand.kind = Operand::Kind::reg;
    operand.index = index;
    operand.type = function_->registers[index].type;
    return true;
}

// A variable's name in the AST; the name itself where it is the module's (or unknown: a function declared nowhere).
Parser::LocalName Parser::resolve(std::string_view name) const {
    const Scopes::Entry *local = locals_.find(name), *prototype = prototypes_.find(name);
    if (prototype && (!local || prototype->depth > local->depth)) local = prototype;
    if (local) return local_names_[local->index];
    std::string text(name);
    const auto found = variables_.find(text);
    return {std::move(text), found != variables_.end() ? module_.variables[found->second].type : Type::none};
}

Operand Parser::named_operand() {
    Operand operand;
    const Token token = current_;
    identifier("a name");
    if (token.text == "_") return operand;  // sink
    if (find_register(token.text, operand)) {
        if (current_.kind == TokenKind::dotted && is_selector(current_.text)) {
            operand.selector = current_.text;
            advance();
        } else if (current_.kind == TokenKind::dotted) {
            operand.component = component_index(current_.text);
            if (operand.component < 0 || operand.component >= function_->registers[operand.index].vector)
                fail("register '" + std::string(token.text) + "' has no component " + quoted(current_));
            advance();
        }
        return operand;
    }
    if (token.text == "WARP_SZ" || token.text[0] == '%') {
        operand.kind = Operand::Kind::special;
        operand.type = token.text == "WARP_SZ" ? Type::u32 : special_register(token.text);
        operand.name = token.text;
        if (operand.type == Type::none) throw ParseError(token.line, "register " + quoted(token) + " is not declared");
        if (current_.kind == TokenKind::dotted) {
            if (component_index(current_.text) < 0) unexpected("a component");
            operand.name += "." + std::string(current_.text);
            advance();
        }
        return operand;
    }
    LocalName symbol = resolve(token.text);
    operand.kind = Operand::Kind::symbol;
    operand.name = std::move(symbol.name);
    if (accept("[")) {  // array[i]: the element's address
        operand.offset = static_cast<int64_t>(unsigned_constant("an index") * std::max(type_bytes(symbol.type), 1u));
        expect("]");
    }
    return operand;
}

// A register, symbol, number or vector, without a pair's second half.
Operand Parser::operand_atom() {
    Operand operand;
    if (at("[")) return address_operand();
    if (at("{")) return vector_operand();
    if (at("!") && ahead_.kind == TokenKind::identifier) {
        advance();
        operand = named_operand();
        if (operand.kind != Operand::Kind::reg) fail("'!' before something that is no predicate");
        operand.negated = true;
        return operand;
    }
    if (at("-") && ahead_.kind == TokenKind::identifier && find_register(ahead_.text, operand)) {
        advance();
        operand = named_operand();
        operand.minus = true;
        return operand;
    }
    if (current_.kind == TokenKind::identifier) {
        operand = named_operand();
        if (operand.kind == Operand::Kind::symbol && (at("+") || at("-"))) {
            const Constant offset = constant();  // the sign is the constant's
            if (offset.is_real) fail("an address plus a float");
            operand.offset =
                static_cast<int64_t>(static_cast<uint64_t>(operand.offset) + static_cast<uint64_t>(offset.integer));
        }
        return operand;
    }
    if (current_.kind == TokenKind::end || current_.kind == TokenKind::dotted || at(";") || at("}"))
        unexpected("an operand");
    const Constant value = constant();
    operand.kind = value.is_real ? Operand::Kind::real : Operand::Kind::integer;
    operand.type = value.real_type;
    operand.integer = value.integer;
    operand.real_bits = value.real_bits;
    return operand;
}

// {a, b, c, d}: of registers, numbers, symbols and sinks.
Operand Parser::vector_operand() {
    Operand vector;
    vector.kind = Operand::Kind::vector;
    expect("{");
    do {
        if (at("{") || at("[")) unexpected("a vector element");
        if (vector.elements.size() >= kMaxVectorElements) fail("a vector operand that is too long");
        vector.elements.push_back(operand_atom());
    } while (accept(","));
    expect("}");
    return vector;
}

// [base], [base+4], [base+-4], [map, {x, y}], [texture, sampler, {x, y}]
Operand Parser::address_operand() {
    Operand address;
    address.kind = Operand::Kind::address;
    expect("[");
    if (at("{") || at("[")) unexpected("an address");
    Operand base = operand_atom();
    if (base.kind == Operand::Kind::reg && (at("+") || at("-"))) {
        const Constant offset = constant();
        if (offset.is_real) fail("an address plus a float");
        address.offset = offset.integer;
    } else {
        address.offset = base.offset;
        base.offset = 0;
    }
    if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::symbol && base.kind != Operand::Kind::integer)
        fail("an address must be a register, a name or a number");
    address.elements.push_back(std::move(base));
    while (accept(",")) {
        if (at("[")) unexpected("a coordinate");
        if (address.elements.size() >= kMaxVectorElements) fail("an address with too many parts");
        address.elements.push_back(operand_atom());
    }
    expect("]");
    if (current_.kind == TokenKind::dotted && current_.text == "unified") {
        address.selector = current_.text;
        advance();
    }
    return address;
}

Operand Parser::operand() {
    Operand first = operand_atom();
    if (!accept("|")) return first;
    if (current_.kind != TokenKind::identifier) unexpected("a second destination");
    Operand second = named_operand();
    // tex may write a vector, and whether its texels are there.
    const bool vector = first.kind == Operand::Kind::vector;
    if ((first.kind != Operand::Kind::reg && first.kind != Operand::Kind::sink && !vector) ||
        (second.kind != Operand::Kind::reg && second.kind != Operand::Kind::sink))
        fail("a pair of destinations must be registers");
    first.has_pair = true;
    first.elements.push_back(std::move(second));
    return first;
}

}  // namespace warpsim::ptx
