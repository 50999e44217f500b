// Compiles the lines of the table and finds the row that an instruction fits.
#include "lower/instruction_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warpsim {

class InstructionSyntax {
  public:
    explicit InstructionSyntax(const std::vector<std::span<const InstructionRow>> &tables);
    const InstructionRow *find(const ptx::Instruction &, std::vector<std::string> &ordered, std::string &why) const;
    Flow flow_of(const ptx::Instruction &) const;
    bool writes_first_operand(const ptx::Instruction &) const;

  private:
    struct Group {
        bool required;
        std::vector<std::string_view> names;  // one of them
        // Types stand in the row's order, and so do state spaces and .and.popc; other modifiers anywhere.
        enum Kind { any, space, type, bits, count_ } kind = any;
    };
    struct OperandForm {
        enum class Kind { destination, source, address, integer, label, call } kind;
        bool pair = false;      // d|p
        bool selector = false;  // a.part, [a].unified
    };
    using Operands = std::vector<OperandForm>;
    struct Row {
        const InstructionRow *row;
        std::vector<Group> groups;
        size_t leading = 0;              // groups that are part of the name: they stand first
        bool open = false;               // "*": further modifiers are the lowering's to check
        std::vector<Operands> operands;  // with and without those that may be left out
    };
    static Row compile(const InstructionRow &, std::string &opcode);
    enum Fit { no, disordered, incomplete, yes };
    // ordered: the instruction's modifiers in the row's order.
    static Fit modifiers_fit(const Row &, const ptx::Instruction &, std::vector<std::string> &ordered,
                             std::string &why);
    static bool operands_fit(const Operands &, const ptx::Instruction &, std::string &why);

    std::map<std::string, std::vector<Row>, std::less<>> rows_;  // by opcode
};

namespace {

using ptx::Instruction;
using ptx::Operand;

// "a,b" or ".a,.b" apart.
std::vector<std::string_view> names_in(std::string_view list) {
    std::vector<std::string_view> names;
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        std::string_view name = list.substr(0, comma);
        if (name.starts_with('.')) name.remove_prefix(1);
        names.push_back(name);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return names;
}

std::string listed(const std::vector<std::string_view> &names) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "." : i + 1 < names.size() ? ", ." : " or .") + std::string(names[i]);
    return text;
}

std::string count_of(size_t operands) {
    return std::to_string(operands) + (operands == 1 ? " operand" : " operands");
}

}  // namespace

InstructionSyntax::InstructionSyntax(const std::vector<std::span<const InstructionRow>> &tables) {
    for (const std::span<const InstructionRow> rows : tables) {
        for (const InstructionRow &row : rows) {
            std::string opcode;
            Row compiled = compile(row, opcode);
            rows_[opcode].push_back(std::move(compiled));
        }
    }
}

InstructionSyntax::Row InstructionSyntax::compile(const InstructionRow &source, std::string &opcode) {
    Row row;
    row.row = &source;
    std::string_view text = source.syntax;
    const size_t end = std::min(text.find_first_of(".{*!"), text.size());
    opcode = text.substr(0, end);
    text.remove_prefix(end);
    while (!text.empty()) {
        if (text[0] == '!') {
            row.leading = row.groups.size();
            text.remove_prefix(1);
            continue;
        }
        if (text == "*") {
            row.open = true;
            break;
        }
        const bool required = text[0] == '.';
        if (required) text.remove_prefix(1);
        size_t length = 0;
        if (text.starts_with('{')) {
            length = text.find('}') + 1;
            row.groups.push_back({required, names_in(text.substr(1, length - 2))});
        } else {
            length = std::min(text.find_first_of(".{*!"), text.size());
            row.groups.push_back({required, {text.substr(0, length)}});
        }
        text.remove_prefix(length);
        const auto is_type = [](std::string_view name) {
            return ptx::type_from_name(name) != ptx::Type::none || name == "s4" || name == "u4" || name == "b1";
        };
        Group &group = row.groups.back();
        const auto all = [&](auto test) { return std::all_of(group.names.begin(), group.names.end(), test); };
        const auto is_space = [](std::string_view name) { return name == "global" || name.starts_with("shared"); };
        if (all(is_type)) group.kind = Group::type;
        if (all(is_space)) group.kind = Group::space;
        if (all([](std::string_view name) { return name == "xor" || name == "and" || name == "popc"; }))
            group.kind = Group::bits;
    }
    row.operands.emplace_back();
    for (std::string_view list = source.operands; !list.empty();) {
        const bool optional = list.starts_with('{');
        list.remove_prefix(std::min(list.find_first_not_of("{, "), list.size()));
        const size_t length = std::min(list.find_first_of(",{} "), list.size());
        std::string_view name = list.substr(0, length);
        OperandForm form{OperandForm::Kind::source, name == "d|p",
                         name.ends_with(".part") || name.ends_with(".unified")};
        if (name.starts_with('d')) form.kind = OperandForm::Kind::destination;
        if (name.starts_with('[')) form.kind = OperandForm::Kind::address;
        if (name == "i") form.kind = OperandForm::Kind::integer;
        if (name == "label") form.kind = OperandForm::Kind::label;
        if (name == "call") form.kind = OperandForm::Kind::call;
        list.remove_prefix(length);
        if (optional) list.remove_prefix(1);  // its brace
        const size_t before = row.operands.size();
        for (size_t i = 0; i < before; ++i) {
            if (optional) row.operands.push_back(row.operands[i]);
            row.operands[i].push_back(form);
        }
    }
    return row;
}

InstructionSyntax::Fit InstructionSyntax::modifiers_fit(const Row &row, const Instruction &in,
                                                        std::vector<std::string> &ordered, std::string &why) {
    std::vector<const std::string *> filled(row.groups.size(), nullptr);
    std::vector<std::string> others;  // of open rows, behind the groups
    size_t last[Group::count_] = {};
    bool in_order = true;
    for (const std::string &modifier : in.modifiers) {
        size_t free = row.groups.size();
        const Group *same = nullptr;
        for (size_t i = 0; i < row.groups.size() && free == row.groups.size(); ++i) {
            const auto &names = row.groups[i].names;
            if (std::find(names.begin(), names.end(), modifier) == names.end()) continue;
            same = &row.groups[i];
            if (!filled[i]) free = i;
        }
        if (free < row.groups.size()) {
            filled[free] = &modifier;
            const Group::Kind kind = row.groups[free].kind;
            in_order = in_order && (kind == Group::any || free >= last[kind]);
            last[kind] = free;
        } else if (row.open) {
            others.push_back(modifier);
        } else if (same) {
            why = same->names.size() == 1 ? "it has ." + modifier + " twice" : "only one of " + listed(same->names);
            return Fit::no;
        } else {
            why = "." + modifier + " does not go with its other modifiers";
            return Fit::no;
        }
    }
    size_t first = 0;
    for (size_t i = 0; i < row.leading; ++i) {
        if (!filled[i]) continue;
        if (&in.modifiers[first++] == filled[i]) continue;
        why = "." + *filled[i] + " stands in another place";
        return Fit::disordered;
    }
    if (!in_order) {
        why = "its types, state spaces or operations stand in another order";
        return Fit::disordered;
    }
    ordered.clear();
    for (size_t i = 0; i < row.groups.size(); ++i) {
        if (filled[i]) {
            ordered.push_back(*filled[i]);
        } else if (row.groups[i].required) {
            why = "it needs " + listed(row.groups[i].names);
            return Fit::incomplete;
        }
    }
    ordered.insert(ordered.end(), others.begin(), others.end());
    return Fit::yes;
}

bool InstructionSyntax::operands_fit(const Operands &forms, const Instruction &in, std::string &why) {
    using Kind = OperandForm::Kind;
    if (!forms.empty() && forms[0].kind == Kind::call) return in.operands.size() >= 3;
    for (size_t i = 0; i < forms.size(); ++i) {
        const Operand &operand = in.operands[i];
        const auto is = [&](Operand::Kind kind) { return operand.kind == kind; };
        const std::string place = "operand " + std::to_string(i + 1);
        const bool value = is(Operand::Kind::reg) || is(Operand::Kind::special) || is(Operand::Kind::integer) ||
                           is(Operand::Kind::real) || is(Operand::Kind::symbol) || is(Operand::Kind::vector);
        std::string wanted;
        switch (forms[i].kind) {
            case Kind::destination:
                if (!is(Operand::Kind::reg) && !is(Operand::Kind::vector) && !is(Operand::Kind::sink))
                    wanted = "a register";
                break;
            case Kind::source:
                if (!value) wanted = "a value";
                break;
            case Kind::address:
                // `ld.u32 %r, array[1]` names the element without brackets around it.
                if (!is(Operand::Kind::address) && !is(Operand::Kind::symbol)) wanted = "an address";
                break;
            case Kind::integer:
                if (!is(Operand::Kind::integer)) wanted = "an integer constant";
                break;
            case Kind::label:
                if (!is(Operand::Kind::label)) wanted = "a label";
                break;
            case Kind::call:
                break;
        }
        if (wanted.empty() && operand.has_pair && !forms[i].pair) wanted = "one register, not two";
        if (wanted.empty() && operand.minus) wanted = "a register without a sign";
        if (wanted.empty() && !operand.selector.empty() && !forms[i].selector) wanted = "without ." + operand.selector;
        if (!wanted.empty()) {
            why = place + " must be " + wanted;
            return false;
        }
    }
    return true;
}

const InstructionRow *InstructionSyntax::find(const Instruction &in, std::vector<std::string> &ordered,
                                              std::string &why) const {
    why.clear();
    const auto rows = rows_.find(in.opcode);
    if (rows == rows_.end()) return nullptr;
    // The first complaint of the row that fits best: modifiers that it has, types in order, all that it needs, the
    // number of operands, then their kinds.
    constexpr int kCount = Fit::yes, kKinds = Fit::yes + 1;
    int best = -1;
    std::string text;
    const auto complain = [&](int quality) {
        if (quality > best) why = text;
        best = std::max(best, quality);
    };
    std::set<size_t> counts;
    for (const Row &row : rows->second) {
        const Fit fit = modifiers_fit(row, in, ordered, text);
        if (fit != Fit::yes) {
            complain(fit);
            continue;
        }
        for (const Operands &forms : row.operands) {
            const bool call = !forms.empty() && forms[0].kind == OperandForm::Kind::call;
            counts.insert(forms.size());
            if (!call && forms.size() != in.operands.size()) continue;
            if (operands_fit(forms, in, text)) return row.row;
            complain(kKinds);
        }
        if (best < kKinds) {
            text = "it has " + count_of(in.operands.size()) + ", not ";
            for (auto count = counts.begin(); count != counts.end(); ++count)
                text += (count == counts.begin() ? "" : " or ") + std::to_string(*count);
            best = std::min<int>(best, Fit::incomplete);
            complain(kCount);
        }
    }
    if (best > Fit::no) return nullptr;
    // What no row of the opcode knows is named with what they do know.
    std::vector<std::string_view> known;
    bool open = false;
    for (const Row &row : rows->second) {
        open = open || row.open;
        for (const Group &group : row.groups)
            for (const std::string_view name : group.names)
                if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
    for (const std::string &modifier : in.modifiers) {
        if (open || std::find(known.begin(), known.end(), modifier) != known.end()) continue;
        why = in.opcode + " has no modifier ." + modifier;
        why += known.empty() ? "" : "; it takes " + listed(known);
        break;
    }
    return nullptr;
}

Flow InstructionSyntax::flow_of(const Instruction &in) const {
    const auto rows = rows_.find(in.opcode);
    return rows == rows_.end() ? Flow::straight : rows->second.front().row->flow;
}

bool InstructionSyntax::writes_first_operand(const Instruction &in) const {
    const auto rows = rows_.find(in.opcode);
    if (rows == rows_.end()) return true;
    const auto writes = [](const Row &row) {
        const Operands &longest = row.operands.front();
        return !longest.empty() &&
               (longest[0].kind == OperandForm::Kind::destination || longest[0].kind == OperandForm::Kind::call);
    };
    const bool first = writes(rows->second.front());
    std::string why;
    std::vector<std::string> ordered;
    for (const Row &row : rows->second) {
        if (writes(row) == first) continue;
        // Its rows differ: the one that the modifiers fit says.
        for (const Row &candidate : rows->second)
            if (modifiers_fit(candidate, in, ordered, why) == Fit::yes) return writes(candidate);
        return true;
    }
    return first;
}

namespace {

const InstructionSyntax &syntax() {
    static const InstructionSyntax compiled(instruction_rows());
    return compiled;
}

}  // namespace

const InstructionRow *find_row(const ptx::Instruction &in, std::vector<std::string> &ordered, std::string &why) {
    const InstructionRow *row = syntax().find(in, ordered, why);
    const std::span<const std::string_view> others = instructions_not_simulated();
    const bool known = std::find(others.begin(), others.end(), in.opcode) != others.end();
    if (!row && known) why = "it is PTX, but warpsim does not simulate " + in.opcode;
    return row;
}

Flow flow_of(const ptx::Instruction &in) {
    return syntax().flow_of(in);
}

bool writes_first_operand(const ptx::Instruction &in) {
    return syntax().writes_first_operand(in);
}

}  // namespace warpsim
