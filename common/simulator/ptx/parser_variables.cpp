#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/parser_impl.h"

namespace warpsim::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = 1ull << 40;

int vector_length(std::string_view word) {
    return word == "v2" ? 2 : word == "v4" ? 4 : word == "v8" ? 8 : 0;
}

bool is_opaque(std::string_view word) {
    return word == "texref" || word == "samplerref" || word == "surfref";
}

}  // namespace

// .reg .v4 .f32 %v, %w;   .reg .b32 %r<100>;
void Parser::register_declaration() {
    int vector = 1;
    if (current_.kind == TokenKind::dotted && vector_length(current_.text))
        vector = vector_length(current_.text), advance();
    const Type type = current_.kind == TokenKind::dotted ? type_from_name(current_.text) : Type::none;
    if (type == Type::none) unexpected("a register type");
    advance();
    do {
        const std::string_view name = identifier("a register name");
        bool is_new;
        if (accept("<")) {
            // The count is a literal: the '>' behind it is no comparison.
            if (current_.kind != TokenKind::integer) unexpected("a number of registers");
            register_ranges_.push_back({type, vector, current_.bits, {}});
            advance();
            expect(">");
            is_new = ranges_.declare(name, static_cast<uint32_t>(register_ranges_.size() - 1));
        } else {
            is_new = registers_.declare(name, static_cast<uint32_t>(function_->registers.size()));
            if (is_new) add_register(std::string(name), type, vector);
        }
        if (!is_new) fail("register '" + std::string(name) + "' is declared twice");
    } while (accept(","));
    expect(";");
}

// ".align 8 .v2 .f32": what all names of one declaration share.
Parser::Declaration Parser::specifiers(Space space) {
    Declaration result;
    Variable &variable = result.variable;
    variable.space = space;
    unsigned vector = 1, type_size = 0;
    uint64_t align = 0;
    for (; current_.kind == TokenKind::dotted; advance()) {
        const std::string_view word = current_.text;
        if (word == "align") {
            advance();
            if (current_.kind != TokenKind::integer) unexpected("an alignment");
            const uint64_t value = current_.bits;
            if (!std::has_single_bit(value) || value > 1u << 20) fail("alignment must be a power of two");
            if (!type_size) align = value;  // behind the type it is .ptr's: what a pointer points to
        } else if (word == "attribute") {
            advance();
            expect("(");
            for (int open = 1; open > 0;) {
                if (current_.kind == TokenKind::end) unexpected("')'");
                open += at("(") ? 1 : at(")") ? -1 : 0;
                if (at_dotted("managed")) variable.managed = true;
                if (open) advance();
            }
        } else if (vector_length(word)) {
            vector = static_cast<unsigned>(vector_length(word));
        } else if (is_opaque(word)) {
            variable.type = Type::b64, type_size = 8;
        } else if (type_from_name(word) != Type::none && !type_size) {
            variable.type = type_from_name(word);
            type_size = type_bytes(variable.type);
            if (!type_size) fail("a variable cannot have type " + quoted(current_));
        } else if (word != "ptr" && word != "global" && word != "shared" && word != "const" && word != "local" &&
                   word != "generic" && word != "param") {
            fail("unexpected " + quoted(current_) + " in a declaration");
        }
    }
    if (!type_size) unexpected("a type");
    result.element_bytes = static_cast<uint64_t>(type_size) * vector;
    variable.align = static_cast<uint32_t>(align ? align : result.element_bytes);
    return result;
}

// "name[4][2]"
Parser::Declaration Parser::declarator(const Declaration &specified) {
    Declaration result = specified;
    Variable &variable = result.variable;
    if (current_.kind == TokenKind::identifier) {
        result.name = current_.text;
        advance();
    } else if (variable.space != Space::param) {
        unexpected("a variable name");
    } else {
        result.name = "_";
    }
    uint64_t bytes = result.element_bytes, row = bytes;  // row: as if a missing size were 1
    while (accept("[")) {
        uint64_t extent = 0;
        if (!at("]")) {
            extent = unsigned_constant("an array's size");
        } else if (!result.dimensions.empty()) {
            fail("only an array's first size may be missing");
        }
        expect("]");
        if (result.dimensions.size() >= 16) fail("an array with too many dimensions");
        result.dimensions.push_back(extent);
        if (std::max<uint64_t>(extent, 1) > kMaxVariableBytes / row) fail("an array that is too large");
        bytes *= extent;
        row *= std::max<uint64_t>(extent, 1);
    }
    variable.bytes = bytes;
    return result;
}

// The values of `= ...`. Variable::initial ends with the last value given.
void Parser::initializer(Declaration &declared) {
    Variable &variable = declared.variable;
    const std::vector<uint64_t> &dimensions = declared.dimensions;
    if (current_.kind == TokenKind::string) {
        variable.initial.assign(current_.text.begin(), current_.text.end());
        advance();
        if (!variable.bytes) variable.bytes = variable.initial.size() + 1;
        if (variable.initial.size() > variable.bytes) fail("more initial values than the array has elements");
        return;
    }
    // stride[i]: bytes from one element to the next at nesting depth i, where depth 0 is one element of the first
    // dimension.
    std::vector<uint64_t> stride(dimensions.size() + 1, declared.element_bytes);
    for (size_t i = dimensions.size(); i-- > 0;)
        stride[i] = stride[i + 1] * (i + 1 < dimensions.size() ? dimensions[i + 1] : 1);
    const unsigned scalar = type_bytes(variable.type);
    const bool unsized = !dimensions.empty() && dimensions[0] == 0;
    std::vector<uint64_t> begin;  // offset at which each open brace's group starts
    uint64_t offset = 0, end = 0;
    const auto check = [&](uint64_t first, uint64_t bytes) {
        if (!unsized && first + bytes > variable.bytes) fail("more initial values than the array has elements");
        // Nested braces can leave gaps: what they may cost in memory is bounded by the text that they come in.
        if (first + bytes > 4096 + 64 * static_cast<uint64_t>(text_bytes_)) fail("an initialiser that is too sparse");
        end = std::max(end, first + bytes);
    };
    const auto close_groups = [&] {
        while (!begin.empty() && accept("}")) {
            offset = begin.back() + (begin.size() >= 2 ? stride[begin.size() - 2] : 0);  // a closed group fills its row
            begin.pop_back();
        }
    };
    do {
        if (accept("{")) {
            if (begin.size() >= dimensions.size() + 1) fail("initialiser is nested too deeply");
            begin.push_back(offset);
            if (!at("}")) continue;
        } else {
            check(offset, scalar);
            initial_element(variable, offset);
            offset += scalar;
        }
        close_groups();
        if (begin.empty()) break;
        expect(",");
        close_groups();  // a comma may come last
    } while (!begin.empty());
    if (unsized && dimensions.size() == 1) variable.bytes = end;
    if (unsized && dimensions.size() > 1)
        variable.bytes = (end + stride[0] - 1) / std::max<uint64_t>(stride[0], 1) * stride[0];
}

// One number or address: 1, -0f3F800000, sym, sym+4, generic(sym)+4, 0xff00(sym), 0xff(generic(sym)+4).
void Parser::initial_element(Variable &variable, uint64_t offset) {
    const auto symbol = [&](unsigned mask_byte) {
        Variable::Relocation relocation{offset, "", 0, false, mask_byte};
        if (current_.text == "generic" && ahead_.text == "(") {
            advance(), advance();
            relocation.generic = true;
        }
        relocation.symbol = identifier("a symbol");
        if (accept("[")) {
            relocation.addend = static_cast<int64_t>(unsigned_constant("an index"));
            expect("]");
        }
        if (relocation.generic) expect(")");
        if (at("+") || at("-")) {
            const Constant addend = constant();
            if (addend.is_real) fail("an address plus a float");
            relocation.addend += addend.integer;
        }
        variable.relocations.push_back(std::move(relocation));
    };
    const auto store_nothing = [&](unsigned bytes) {
        if (variable.initial.size() < offset + bytes) variable.initial.resize(offset + bytes);
    };
    if (current_.kind == TokenKind::identifier && current_.text != "WARP_SZ") {
        if (type_bytes(variable.type) < 4) fail("an address does not fit into this type");
        symbol(~0u);
        store_nothing(type_bytes(variable.type));
    } else if (current_.kind == TokenKind::integer && ahead_.kind == TokenKind::punctuation && ahead_.text == "(") {
        const uint64_t mask = current_.bits;
        const unsigned byte = mask ? static_cast<unsigned>(std::countr_zero(mask)) / 8 : 8;
        if (byte > 7 || mask != 0xffull << (8 * byte)) fail("an address mask must select one byte");
        advance(), advance();
        if (current_.kind != TokenKind::identifier) unexpected("a symbol");
        symbol(byte);
        expect(")");
        store_nothing(1);
    } else {
        store_constant(variable, offset, constant());
    }
}

void Parser::store_constant(Variable &variable, uint64_t offset, const Constant &value) {
    const unsigned bytes = type_bytes(variable.type);
    uint64_t bits = static_cast<uint64_t>(value.integer);
    if (value.is_real || is_float(variable.type)) {
        const double number = !value.is_real ? static_cast<double>(value.integer)
                              : value.real_type == Type::f32
                                  ? std::bit_cast<float>(static_cast<uint32_t>(value.real_bits))
                                  : std::bit_cast<double>(value.real_bits);
        if (bytes == 8) {
            bits = value.is_real && value.real_type == Type::f64 ? value.real_bits : std::bit_cast<uint64_t>(number);
        } else if (bytes == 4) {
            bits = value.is_real && value.real_type == Type::f32 ? value.real_bits
                                                                 : std::bit_cast<uint32_t>(static_cast<float>(number));
        } else if (value.is_real) {
            fail("a float literal initialises 32- and 64-bit types only");
        }
    }
    if (variable.initial.size() < offset + bytes) variable.initial.resize(offset + bytes);
    std::memcpy(variable.initial.data() + offset, &bits, std::min(bytes, 8u));
}

void Parser::module_variables(Space space, bool external) {
    const Declaration specified = specifiers(space);
    do {
        Declaration declared = declarator(specified);
        Variable &variable = declared.variable;
        variable.name = declared.name;
        variable.external = external;
        if (accept("=")) initializer(declared);
        keep_module_variable(std::move(variable));
    } while (accept(","));
    expect(";");
}

// A second declaration (extern before the definition, .common twice) is the same variable.
void Parser::keep_module_variable(Variable &&variable) {
    const auto [found, is_new] = variables_.try_emplace(variable.name, module_.variables.size());
    if (is_new) {
        module_.variables.push_back(std::move(variable));
        return;
    }
    Variable &known = module_.variables[found->second];
    if (known.external || variable.bytes > known.bytes) known = std::move(variable);
}

// Variables declared inside a function: .local, .shared, .param; .global and .const ones move to the module.
void Parser::local_variables(Space space) {
    const Declaration specified = specifiers(space);
    do {
        Declaration declared = declarator(specified);
        Variable &variable = declared.variable;
        name_local(variable, declared.name);
        if (accept("=")) initializer(declared);
        if (space == Space::global || space == Space::const_) {
            keep_module_variable(std::move(variable));
        } else {
            function_->variables.push_back(std::move(variable));
        }
    } while (accept(","));
    expect(";");
}

void Parser::name_local(Variable &variable, std::string_view source_name) {
    variable.name = unique_name(source_name);
    if (source_name == "_") return;
    if (!locals_.declare(source_name, static_cast<uint32_t>(local_names_.size())))
        fail("'" + std::string(source_name) + "' is declared twice");
    local_names_.push_back({variable.name, variable.type});
}

// The name itself where it is free in the function and the module, else the name with '@' and a number, which no source
// has.
std::string Parser::unique_name(std::string_view name) {
    std::string unique(name);
    if (variables_.contains(unique) || functions_.contains(unique) || !used_names_.insert(unique).second) {
        unique += "@" + std::to_string(++name_counts_[std::string(name)]);
        used_names_.insert(unique);
    }
    return unique;
}

}  // namespace warpsim::ptx
