// The SIMD video instructions:
//   vop4.dtype.atype.btype{.sat, .add} d{.mask}, a{.asel}, b{.bsel}, c        vset4.atype.btype.cmp{.add} ...

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>

#include "exec/video.h"
#include "lower/families.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

struct Name {
    std::string_view text;
    VideoOp what;
};
constexpr Name kOpcodes[] = {
    {"vadd", VideoOp::add}, {"vsub", VideoOp::sub}, {"vavrg", VideoOp::average},
    {"vmin", VideoOp::min}, {"vmax", VideoOp::max}, {"vabsdiff", VideoOp::absolute_difference},
};
constexpr Name kComparisons[] = {{"eq", VideoOp::eq}, {"ne", VideoOp::ne}, {"lt", VideoOp::lt},
                                 {"le", VideoOp::le}, {"gt", VideoOp::gt}, {"ge", VideoOp::ge}};

template <size_t N>
const Name *find(const Name (&names)[N], std::string_view text) {
    const Name *found = std::find_if(names, names + N, [&](const Name &name) { return name.text == text; });
    return found == names + N ? nullptr : found;
}

// The digits of .b3210 or .h10 from the right; `fallback` where there is no selector.
std::vector<unsigned> digits_of(Lowering &l, const Instruction &in, const Operand &operand, unsigned parts,
                                std::string_view fallback) {
    const std::string_view text = operand.selector.empty() ? fallback : std::string_view(operand.selector).substr(1);
    const char kind = parts == 4 ? 'b' : 'h';
    if (!operand.selector.empty() && operand.selector[0] != kind)
        l.unsupported(in, "the selector ." + operand.selector);
    std::vector<unsigned> digits;
    for (auto c = text.rbegin(); c != text.rend(); ++c) digits.push_back(static_cast<unsigned>(*c - '0'));
    return digits;
}

}  // namespace

void lower_video(Lowering &l, const Instruction &in) {
    const unsigned parts = static_cast<unsigned>(in.opcode.back() - '0');
    const std::string_view name = std::string_view(in.opcode).substr(0, in.opcode.size() - 1);
    const std::vector<std::string> &m = in.modifiers;
    const bool compares = name == "vset";
    if (m.size() < 3 || m.size() > 4) l.unsupported(in);
    const Name *what = compares ? find(kComparisons, m[2]) : find(kOpcodes, name);
    if (!what) l.unsupported(in);
    VideoForm form;
    form.what = what->what;
    const auto add_sign = [&](const std::string &type, unsigned bit) {
        if (type != "s32" && type != "u32") l.unsupported(in, "the types are .s32 and .u32");
        form.signs |= static_cast<uint8_t>((type == "s32") << bit);
    };
    add_sign(m[compares ? 0 : 1], 0);
    add_sign(m[compares ? 1 : 2], 1);
    if (!compares) add_sign(m[0], 2);
    const bool sums = m.size() == 4 && m[3] == "add";
    form.saturate = m.size() == 4 && m[3] == "sat" && !compares;
    if (m.size() == 4 && !sums && !form.saturate) l.unsupported(in, "." + m[3]);

    if (sums) form.mask = kVideoSum;
    for (unsigned digit : digits_of(l, in, in.operands[0], parts, parts == 4 ? "3210" : "10")) {
        if (digit >= parts) l.unsupported(in, "the mask");
        form.mask |= static_cast<uint8_t>(1u << digit);
    }
    for (unsigned operand : {1u, 2u}) {
        const std::string_view fallback = parts == 4 ? (operand == 1 ? "3210" : "7654") : (operand == 1 ? "10" : "32");
        const std::vector<unsigned> digits = digits_of(l, in, in.operands[operand], parts, fallback);
        if (digits.size() != parts) l.unsupported(in, "a selector names " + std::to_string(parts) + " parts");
        for (unsigned i = 0; i < parts; ++i) {
            if (digits[i] >= 2 * parts) l.unsupported(in, "the selector");
            form.select[i] |= static_cast<uint8_t>(digits[i] << 4 * (operand - 1));
        }
    }
    const uint32_t a = l.source(in.operands[1], Type::b32), b = l.source(in.operands[2], Type::b32),
                   c = l.source(in.operands[3], Type::b32), dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    op.imm = std::bit_cast<int64_t>(form);
}

}  // namespace warpsim
