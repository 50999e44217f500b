#include <map>

#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type;
using machine::Register;

static unsigned register_bits(const Type *type) {
    return type->bits <= 32 ? 32 : 64;
}

static bool is_narrow(const Type *type) {
    return type->kind == Kind::integer && type->bits != 32 && type->bits != 64;
}

// A register holds an integer that is narrower than it with zeros above.
std::string Lowering::with_sign(const Type *type, const std::string &a) {
    if (!is_narrow(type)) return a;
    const unsigned bits = register_bits(type);
    return emit_to(register_of(type), format("bfe.s{}", bits), format("{}, 0, {}", a, type->bits));
}

std::string Lowering::narrowed(const Type *type, const std::string &a) {
    if (!is_narrow(type)) return a;
    const uint64_t mask = (uint64_t{1} << type->bits) - 1;
    return emit_to(register_of(type), format("and.b{}", register_bits(type)), format("{}, {}", a, mask));
}

std::string Lowering::float_type(const Type *type) const {
    switch (type->kind) {
        case Kind::half:
            return "f16";
        case Kind::bfloat:
            return "bf16";
        case Kind::single:
            return flushes_ ? "ftz.f32" : "f32";
        case Kind::real:
            return "f64";
        default:
            refuse("a number of type " + ir::to_string(type));
    }
}

std::string Lowering::on_predicates(const std::string &opcode, const std::string &a, const std::string &b) {
    if (opcode == "and" || opcode == "or" || opcode == "xor")
        return emit_to(Register::predicate, opcode + ".pred", a + ", " + b);
    if (opcode == "add" || opcode == "sub") return emit_to(Register::predicate, "xor.pred", a + ", " + b);
    if (opcode == "mul") return emit_to(Register::predicate, "and.pred", a + ", " + b);
    refuse("'" + opcode + "' of i1");
}

std::string Lowering::float_binary(const Instruction &one, const Type *type, const std::string &a,
                                   const std::string &b) {
    const Register kind = register_of(type);
    const std::string &opcode = one.opcode;
    if (opcode == "frem") refuse("the remainder of floating-point numbers");
    if (opcode == "fdiv") {
        if (type->kind == Kind::single || type->kind == Kind::real)
            return emit_to(kind, "div.rn." + float_type(type), a + ", " + b);
        // The quotient of 16-bit numbers, rounded twice, is the one that is rounded once.
        static const Type single{.kind = Kind::single, .bits = 32};
        const std::string quotient =
            emit_to(Register::f32, "div.rn.f32",
                    convert("fpext", type, &single, a) + ", " + convert("fpext", type, &single, b));
        return convert("fptrunc", &single, type, quotient);
    }
    // Without a rounding ptxas may make a product and a sum one fma, as the flag allows.
    return emit_to(kind, opcode.substr(1) + (one.contract ? "." : ".rn.") + float_type(type), a + ", " + b);
}

std::string Lowering::binary(const Instruction &one, const Type *type, std::string a, std::string b) {
    if (type->is_float()) return float_binary(one, type, a, b);
    if (type->kind == Kind::pointer) refuse("'" + one.opcode + "' of pointers");
    const std::string &opcode = one.opcode;
    if (type->bits == 1) return on_predicates(opcode, a, b);
    const Register kind = register_of(type);
    const unsigned bits = register_bits(type);
    struct Form {
        const char *instruction;
        bool is_signed, stays_narrow;
    };
    static const std::map<std::string_view, Form> forms = {
        {"add", {"add.s", false, false}}, {"sub", {"sub.s", false, false}}, {"mul", {"mul.lo.s", false, false}},
        {"udiv", {"div.u", false, true}}, {"urem", {"rem.u", false, true}}, {"sdiv", {"div.s", true, false}},
        {"srem", {"rem.s", true, false}}, {"shl", {"shl.b", false, false}}, {"lshr", {"shr.u", false, true}},
        {"ashr", {"shr.s", true, false}}, {"and", {"and.b", false, true}},  {"or", {"or.b", false, true}},
        {"xor", {"xor.b", false, true}},
    };
    const auto form = forms.find(opcode);
    if (form == forms.end()) refuse("the instruction '" + opcode + "'");
    const bool is_shift = opcode == "shl" || opcode == "lshr" || opcode == "ashr";
    if (form->second.is_signed) a = with_sign(type, a);
    if (form->second.is_signed && !is_shift) b = with_sign(type, b);
    if (is_shift && bits == 64) b = integer_width(b, 64, 32, false);
    const std::string found = emit_to(kind, form->second.instruction + std::to_string(bits), a + ", " + b);
    return form->second.stays_narrow || one.no_unsigned_wrap ? found : narrowed(type, found);
}

std::string Lowering::compare_integers(const std::string &how, const Type *type, std::string a, std::string b) {
    static const std::map<std::string_view, std::string_view> words = {
        {"eq", "eq"},  {"ne", "ne"},  {"ult", "lt"}, {"ule", "le"}, {"ugt", "gt"},
        {"uge", "ge"}, {"slt", "lt"}, {"sle", "le"}, {"sgt", "gt"}, {"sge", "ge"}};
    const auto word = words.find(how);
    if (word == words.end()) refuse("the comparison '" + how + "'");
    const bool is_signed = how[0] == 's', is_equality = how == "eq" || how == "ne";
    if (type->kind == Kind::integer && type->bits == 1) {
        const std::string differ = emit_to(Register::predicate, "xor.pred", a + ", " + b);
        if (how == "ne") return differ;
        if (how == "eq") return emit_to(Register::predicate, "not.pred", differ);
        a = number_of(a), b = number_of(b);
        if (is_signed) std::swap(a, b);  // true is -1
        return emit_to(Register::predicate, format("setp.{}.u32", word->second), a + ", " + b);
    }
    register_of(type);
    if (is_signed) a = with_sign(type, a), b = with_sign(type, b);
    const char kind = is_signed ? 's' : is_equality ? 'b' : 'u';
    return emit_to(Register::predicate, format("setp.{}.{}{}", word->second, kind, register_bits(type)), a + ", " + b);
}

std::string Lowering::compare_floats(const std::string &how, const Type *type, const std::string &a,
                                     const std::string &b) {
    static const std::map<std::string_view, std::string_view> words = {
        {"oeq", "eq"},  {"ogt", "gt"},  {"oge", "ge"},  {"olt", "lt"},  {"ole", "le"},  {"one", "ne"},  {"ord", "num"},
        {"uno", "nan"}, {"ueq", "equ"}, {"ugt", "gtu"}, {"uge", "geu"}, {"ult", "ltu"}, {"ule", "leu"}, {"une", "neu"}};
    const auto word = words.find(how);
    if (word == words.end()) {
        if (how != "true" && how != "false") refuse("the comparison '" + how + "'");
        return emit_to(Register::predicate, "setp.ne.s32", how == "true" ? "1, 0" : "0, 0");
    }
    return emit_to(Register::predicate, format("setp.{}.{}", word->second, float_type(type)), a + ", " + b);
}

std::string Lowering::select(const Type *type, const std::string &condition, const std::string &a,
                             const std::string &b) {
    const Register kind = register_of(type);
    if (kind == Register::predicate) {
        const std::string first = emit_to(kind, "and.pred", condition + ", " + a);
        const std::string otherwise = emit_to(kind, "not.pred", condition);
        const std::string second = emit_to(kind, "and.pred", otherwise + ", " + b);
        return emit_to(kind, "or.pred", first + ", " + second);
    }
    static const char *const words[] = {"", "selp.b16", "selp.b32", "selp.b64", "selp.f32", "selp.f64"};
    return emit_to(kind, words[static_cast<int>(kind)], format("{}, {}, {}", a, b, condition));
}

std::string Lowering::negated(const Type *type, const std::string &a) {
    return emit_to(register_of(type), "neg." + float_type(type), a);
}

// What is done alike to each scalar of a vector.
void Lowering::elementwise(const Instruction &one) {
    const std::vector<ir::Leaf> leaves = ir::leaves_of(one.operands[0]->type), results = ir::leaves_of(one.type);
    if (one.opcode == "select" && one.type->kind == Kind::pointer && is_shared_[one.result->index]) {
        const std::string condition = operand(one.operands[0]);
        const std::string a = pointer(address(one.operands[1]), shared), b = pointer(address(one.operands[2]), shared);
        return define(one, {select(one.type, condition, a, b)});
    }
    std::vector<Texts> from;
    for (const ir::Value *operand : one.operands) from.push_back(operands(operand));
    Texts found;
    for (size_t i = 0; i < results.size(); ++i) {
        if (one.opcode == "icmp") {
            found.push_back(compare_integers(one.detail, leaves[i].type, from[0][i], from[1][i]));
        } else if (one.opcode == "fcmp") {
            found.push_back(compare_floats(one.detail, leaves[i].type, from[0][i], from[1][i]));
        } else if (one.opcode == "select") {
            found.push_back(select(results[i].type, from[0][from[0].size() > 1 ? i : 0], from[1][i], from[2][i]));
        } else if (one.opcode == "fneg") {
            found.push_back(negated(results[i].type, from[0][i]));
        } else if (from.size() == 1) {
            found.push_back(convert(one.opcode, leaves[i].type, results[i].type, from[0][i]));
        } else {
            found.push_back(binary(one, results[i].type, from[0][i], from[1][i]));
        }
    }
    define(one, std::move(found));
}

}  // namespace compiler
