
#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type;
using machine::Register;

std::string Lowering::number_of(const std::string &predicate) {
    return emit_to(Register::b32, "selp.b32", "1, 0, " + predicate);
}

std::string Lowering::predicate_of(const std::string &number) {
    const std::string bit = emit_to(Register::b32, "and.b32", number + ", 1");
    return emit_to(Register::predicate, "setp.ne.b32", bit + ", 0");
}

// Between registers of 32 and 64 bits, of the widths given; the bits above stay zeros.
std::string Lowering::integer_width(const std::string &a, unsigned from, unsigned to, bool is_signed) {
    const Type wide{.kind = Kind::integer, .bits = to}, old{.kind = Kind::integer, .bits = from};
    const bool was_64 = from > 32, is_64 = to > 32;
    if (to > from) {
        std::string found = is_signed ? with_sign(&old, a) : a;
        if (!was_64 && is_64) found = emit_to(Register::b64, is_signed ? "cvt.s64.s32" : "cvt.u64.u32", found);
        return is_signed ? narrowed(&wide, found) : found;
    }
    std::string found = a;
    if (was_64 && !is_64) found = emit_to(Register::b32, "cvt.u32.u64", found);
    return to < from ? narrowed(&wide, found) : found;
}

std::string Lowering::convert(const std::string &opcode, const Type *from, const Type *to, const std::string &a) {
    if (opcode == "ptrtoint" || opcode == "ptrtoaddr") return integer_width(a, 64, to->bits, false);
    if (opcode == "inttoptr") return integer_width(a, from->bits, 64, false);
    register_of(from), register_of(to);
    const bool from_predicate = from->kind == Kind::integer && from->bits == 1;
    if (opcode == "zext" || opcode == "sext") {
        if (!from_predicate) return integer_width(a, from->bits, to->bits, opcode == "sext");
        if (to->bits == 1) return a;
        const std::string ones = opcode == "zext"                   ? "1"
                                 : to->bits >= 64 || to->bits == 32 ? "-1"
                                                                    : std::to_string((uint64_t{1} << to->bits) - 1);
        return emit_to(register_of(to), to->bits > 32 ? "selp.b64" : "selp.b32", ones + ", 0, " + a);
    }
    if (opcode == "trunc") {
        if (to->bits == 1) return predicate_of(integer_width(a, from->bits, 32, false));
        return integer_width(a, from->bits, to->bits, false);
    }
    const auto name = [&](const Type *type) {
        return type->kind == Kind::half     ? "f16"
               : type->kind == Kind::bfloat ? "bf16"
               : type->kind == Kind::single ? "f32"
                                            : "f64";
    };
    static const Type single{.kind = Kind::single, .bits = 32}, word{.kind = Kind::integer, .bits = 32};
    if (opcode == "fpext" || opcode == "fptrunc") {
        if (from->kind == Kind::bfloat && to->kind == Kind::single) {  // its bits are the upper half
            const std::string wide = emit_to(Register::b32, "cvt.u32.u16", a);
            return reinterpret(&word, &single, emit_to(Register::b32, "shl.b32", wide + ", 16"));
        }
        if (from->kind == Kind::bfloat) return convert(opcode, &single, to, convert(opcode, from, &single, a));
        const char *flush =
            flushes_ && from->kind != Kind::half && to->kind != Kind::half && to->kind != Kind::bfloat ? "ftz." : "";
        return emit_to(register_of(to),
                       format("cvt.{}{}{}.{}", opcode == "fpext" ? "" : "rn.", flush, name(to), name(from)), a);
    }
    if (opcode == "fptosi" || opcode == "fptoui") {
        if (from->kind == Kind::bfloat) return convert(opcode, &single, to, convert("fpext", from, &single, a));
        const unsigned bits = to->bits <= 32 ? 32 : 64;
        const std::string found =
            emit_to(bits == 32 ? Register::b32 : Register::b64,
                    format("cvt.rzi.{}{}{}.{}", from->kind == Kind::single && flushes_ ? "ftz." : "",
                           opcode == "fptosi" ? 's' : 'u', bits, name(from)),
                    a);
        return to->bits == 1 ? predicate_of(found) : narrowed(to, found);
    }
    if (opcode == "sitofp" || opcode == "uitofp") {
        const bool is_signed = opcode == "sitofp";
        if (to->kind == Kind::bfloat && from->bits > 8) {
            if (from->bits > 24) refuse("an integer of " + std::to_string(from->bits) + " bits to bfloat");
            return convert("fptrunc", &single, to, convert(opcode, from, &single, a));
        }
        std::string number = from_predicate ? number_of(a) : is_signed ? with_sign(from, a) : a;
        if (from_predicate && is_signed) number = emit_to(Register::b32, "neg.s32", number);
        if (to->kind == Kind::bfloat) {
            const std::string exact = emit_to(Register::f32, is_signed ? "cvt.rn.f32.s32" : "cvt.rn.f32.u32", number);
            return convert("fptrunc", &single, to, exact);
        }
        return emit_to(register_of(to),
                       format("cvt.rn.{}.{}{}", name(to), is_signed ? 's' : 'u', from->bits <= 32 ? 32 : 64), number);
    }
    refuse("the instruction '" + opcode + "'");
}

// The same bits in another kind of register; both types have as many.
std::string Lowering::reinterpret(const Type *from, const Type *to, const std::string &a) {
    const Register source = register_of(from), target = register_of(to);
    if (source == target) return a;
    if (source == Register::b16) return emit_to(target, "cvt.u32.u16", a);
    if (target == Register::b16) return emit_to(target, "cvt.u16.u32", a);
    if (source == Register::predicate || target == Register::predicate)
        refuse("a bitcast from " + ir::to_string(from) + " to " + ir::to_string(to));
    return emit_to(target, from->bits == 64 ? "mov.b64" : "mov.b32", a);
}

// Through words of 32 bits where the scalars' sizes differ.
Lowering::Texts Lowering::bitcast(const Type *from, const Type *to, const Texts &all) {
    const std::vector<ir::Leaf> sources = ir::leaves_of(from), targets = ir::leaves_of(to);
    static const Type word{.kind = Kind::integer, .bits = 32}, number{.kind = Kind::integer, .bits = 64};
    static const Type half{.kind = Kind::integer, .bits = 16};
    Texts found;
    if (sources.size() == targets.size()) {
        for (size_t i = 0; i < all.size(); ++i) found.push_back(reinterpret(sources[i].type, targets[i].type, all[i]));
        return found;
    }
    Texts words((ir::size_of(from) + 3) / 4);
    for (size_t i = 0; i < all.size(); ++i) {
        const auto [type, offset] = sources[i];
        std::string &into = words[offset / 4];
        if (type->bits == 64) {
            const std::string bits = reinterpret(type, &number, all[i]);
            into = emit_to(Register::b32, "cvt.u32.u64", bits);
            const std::string high = emit_to(Register::b64, "shr.u64", bits + ", 32");
            words[offset / 4 + 1] = emit_to(Register::b32, "cvt.u32.u64", high);
        } else if (type->bits == 32) {
            into = reinterpret(type, &word, all[i]);
        } else if (type->bits == 16 || type->bits == 8) {
            std::string bits = type->bits == 16 ? reinterpret(type, &half, all[i]) : all[i];
            if (offset % 4) bits = emit_to(Register::b32, "shl.b32", format("{}, {}", bits, offset % 4 * 8));
            into = into.empty() ? bits : emit_to(Register::b32, "or.b32", into + ", " + bits);
        } else {
            refuse("a bitcast from " + ir::to_string(from) + " to " + ir::to_string(to));
        }
    }
    for (const auto &[type, offset] : targets) {
        const std::string &from_word = words.at(offset / 4);
        if (type->bits == 64) {
            const std::string low = emit_to(Register::b64, "cvt.u64.u32", from_word);
            const std::string wide = emit_to(Register::b64, "cvt.u64.u32", words.at(offset / 4 + 1));
            const std::string high = emit_to(Register::b64, "shl.b64", wide + ", 32");
            found.push_back(reinterpret(&number, type, emit_to(Register::b64, "or.b64", low + ", " + high)));
        } else if (type->bits == 32) {
            found.push_back(reinterpret(&word, type, from_word));
        } else if (type->bits == 16 || type->bits == 8) {
            const std::string part =
                emit_to(Register::b32, "bfe.u32", format("{}, {}, {}", from_word, offset % 4 * 8, type->bits));
            found.push_back(type->bits == 16 ? reinterpret(&half, type, part) : part);
        } else {
            refuse("a bitcast from " + ir::to_string(from) + " to " + ir::to_string(to));
        }
    }
    return found;
}

void Lowering::vector_element(const Instruction &one) {
    Texts all = operands(one.operands[0]);
    if (one.opcode == "shufflevector") {
        const Texts more = operands(one.operands[1]);
        all.insert(all.end(), more.begin(), more.end());
        const ir::Value *mask = one.operands[2];
        Texts found;
        for (uint64_t i = 0; i < one.type->count; ++i) {
            const uint64_t index = mask->kind == ir::ValueKind::aggregate ? mask->operands.at(i)->bits : 0;
            found.push_back(all.at(index));
        }
        return define(one, std::move(found));
    }
    const bool inserts = one.opcode == "insertelement";
    const ir::Value *index = one.operands[inserts ? 2 : 1];
    const Type *type = one.operands[0]->type->elements[0];
    const std::string value = inserts ? operand(one.operands[1]) : "";
    if (index->kind == ir::ValueKind::number) {
        if (index->bits >= all.size()) refuse("an element beyond a vector's end");
        if (!inserts) return define(one, {all[index->bits]});
        all[index->bits] = value;
        return define(one, std::move(all));
    }
    const std::string at = operand(index);
    std::string found = all[0];
    for (size_t i = inserts ? 0 : 1; i < all.size(); ++i) {
        const std::string is_it = compare_integers("eq", index->type, at, std::to_string(i));
        if (inserts) {
            all[i] = select(type, is_it, value, all[i]);
        } else {
            found = select(type, is_it, all[i], found);
        }
    }
    define(one, inserts ? std::move(all) : Texts{found});
}

}  // namespace compiler
