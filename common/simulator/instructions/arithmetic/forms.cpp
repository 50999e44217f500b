// Arithmetic by forms: classes, types and handlers of the forms stand beside the handlers.
#include "instructions/arithmetic/forms.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instructions/rows.h"

namespace warpsim {

const AluForms &alu_forms() {
    static const AluForms forms = [] {
        AluForms f;
        add_integer_forms(f);
        add_bit_forms(f);
        add_carry_forms(f);
        add_float_forms(f);
        add_special_forms(f);
        add_half_forms(f);
        add_compare_forms(f);
        add_select_forms(f);
        add_convert_forms(f);
        return f;
    }();
    return forms;
}

namespace {

// An instruction's text with its modifiers in one order: by the alphabet, then the types as they stand.
std::string in_order(const std::string &text) {
    std::vector<std::string> names, types;
    std::string opcode;
    for (size_t at = 0; at < text.size();) {
        const size_t dot = std::min(text.find('.', at), text.size());
        std::string part = text.substr(at, dot - at);
        at = dot + 1;
        if (opcode.empty())
            opcode = std::move(part);
        else
            (ptx::type_from_name(part) == ptx::Type::none ? names : types).push_back(std::move(part));
    }
    // .lo, .wide, .l and the like are part of the name: nothing stands before them.
    const auto part_of_name = [](const std::string &name) {
        return name == "lo" || name == "hi" || name == "wide" || name == "l" || name == "r";
    };
    const auto found = std::find_if(names.begin(), names.end(), part_of_name);
    const bool named = found != names.end();
    if (named && !text.starts_with(opcode + "." + *found)) return text;
    std::sort(names.begin() + named, names.end());
    for (const auto *parts : {&names, &types})
        for (const std::string &part : *parts) opcode += "." + part;
    return opcode;
}

}  // namespace

const AluForm *find_form(const std::string &text, size_t sources) {
    static const std::unordered_map<std::string, std::string> texts_by_order = [] {
        std::unordered_map<std::string, std::string> texts;
        for (const auto &[known, form] : alu_forms())
            if (known.find('/') == known.npos) texts[in_order(known)] = known;
        return texts;
    }();
    const AluForms &forms = alu_forms();
    const auto count = [](const AluForm &form) {
        return size_t(std::find(form.src.begin(), form.src.end(), ptx::Type::none) - form.src.begin());
    };
    for (const std::string &key : {text, text + "/3"})
        if (const auto it = forms.find(key); it != forms.end() && count(it->second) == sources) return &it->second;
    const auto ordered = texts_by_order.find(in_order(text));
    return ordered == texts_by_order.end() || ordered->second == text ? nullptr : find_form(ordered->second, sources);
}

// The barriers keep the handler's loads behind the first change of mode and its stores before the second.
void run_rounded(Handler handler, int mode, Warp &w, const Op &op) {
    std::fesetround(mode);
    if (std::fegetround() != mode)
        throw std::runtime_error("this machine rounds to the nearest number and not otherwise");
    asm volatile("" ::: "memory");
    handler(w, op);
    asm volatile("" ::: "memory");
    std::fesetround(FE_TONEAREST);
}

void expect_operands(Lowering &lowering, const ptx::Instruction &in, size_t count) {
    if (in.operands.size() != count)
        lowering.unsupported(
            in, "it has " + std::to_string(in.operands.size()) + " operands, not " + std::to_string(count));
}

uint32_t alu_destination(Lowering &lowering, const ptx::Instruction &in, const ptx::Operand &operand, ptx::Type type) {
    using Kind = ptx::Operand::Kind;
    if (operand.kind == Kind::reg) {
        const bool predicate = operand.type == ptx::Type::pred;
        if (predicate != (type == ptx::Type::pred) || lowering.register_bytes(operand) != ptx::type_bytes(type))
            lowering.unsupported(in,
                                 std::string("its destination must be a register as wide as .") + ptx::type_name(type));
    } else if (operand.kind != Kind::sink) {
        lowering.unsupported(in, "its destination is not a register");
    }
    return lowering.destination(operand, type);
}

uint32_t alu_source(Lowering &lowering, const ptx::Instruction &in, const ptx::Operand &operand, ptx::Type type,
                    Width width) {
    if (operand.kind == ptx::Operand::Kind::reg) {
        if ((operand.type == ptx::Type::pred) != (type == ptx::Type::pred))
            lowering.unsupported(in, std::string("a source must be of type .") + ptx::type_name(type));
        if (width == Width::exact && lowering.register_bytes(operand) != ptx::type_bytes(type))
            lowering.unsupported(in, std::string("a source must be a register as wide as .") + ptx::type_name(type));
    }
    return lowering.source(operand, type);
}

Op &emit_form(Lowering &lowering, const ptx::Instruction &in, const AluForm &form, Width width) {
    uint32_t slots[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};
    for (size_t i = 0; i < form.src.size() && form.src[i] != ptx::Type::none; ++i)
        slots[i] = alu_source(lowering, in, in.operands.at(i + 1), form.src[i], width);
    const uint32_t dst = alu_destination(lowering, in, in.operands.at(0), form.dst);
    Op &op = lowering.emit(in, form.fn, form.cls);
    op.dst = dst;
    op.a = slots[0];
    op.b = slots[1];
    op.c = slots[2];
    op.extra = slots[3];
    return op;
}

std::string why_no_form(const ptx::Instruction &in) {
    std::set<std::string> known;
    for (const auto &[text, form] : alu_forms()) {
        if (!text.starts_with(in.opcode + ".")) continue;
        std::string_view rest = std::string_view(text).substr(in.opcode.size(), text.find('/') - in.opcode.size());
        while (!rest.empty()) {
            rest.remove_prefix(1);
            const size_t end = std::min(rest.find('.'), rest.size());
            known.emplace(rest.substr(0, end));
            rest.remove_prefix(end);
        }
    }
    for (const std::string &modifier : in.modifiers) {
        if (known.count(modifier)) continue;
        std::string list;
        for (const std::string &name : known) list += (list.empty() ? "." : ", .") + name;
        return in.opcode + " has no modifier ." + modifier + "; it takes " + list;
    }
    return "no such combination of modifiers and operands";
}

void lower_by_text(Lowering &lowering, const ptx::Instruction &in) {
    const AluForm *form = in.operands.empty() ? nullptr : find_form(in.text(), in.operands.size() - 1);
    if (!form) lowering.unsupported(in, why_no_form(in));
    emit_form(lowering, in, *form);
}

namespace {

constexpr InstructionRow kRows[] = {
    // Arithmetic: classes, types and handlers of the forms stand beside the handlers.
    {"abs*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"neg*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_negation},
    {"rcp*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sqrt*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"rsqrt*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sin*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"cos*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"lg2*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"ex2*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"tanh*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"testp*", "d, a", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sub*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_difference},
    {"mul*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{u16,u32,u64,s16,s32,s64}", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.full!{.ftz}.f32", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{approx," ROUND "}{.ftz}.f32", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"div.{" ROUND "}.f64", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"rem*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"mul24*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"addc*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"subc*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"copysign*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_bits<kMovesAB>},
    {"add*", "d, a, b", OpClass::other, Flow::straight, nullptr, lower_by_text, passes_sum},
    {"min*", "d, a, b{, c}", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"max*", "d, a, b{, c}", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"mad*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"fma*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"mad24*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"madc*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"sad*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"dp4a*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
    {"dp2a*", "d, a, b, c", OpClass::other, Flow::straight, nullptr, lower_by_text},
};

}  // namespace

std::span<const InstructionRow> arithmetic_rows() {
    return kRows;
}

}  // namespace warpsim
