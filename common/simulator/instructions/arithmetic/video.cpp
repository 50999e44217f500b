// SIMD video instructions (vadd2, vadd4, vabsdiff4, vset2, ...): two or four parts of 16 or 8 bits.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "core/op.h"
#include "core/warp.h"
#include "instructions/rows.h"

namespace warpsim {

namespace {

enum class VideoOp : uint8_t { add, sub, average, absolute_difference, min, max, eq, ne, lt, le, gt, ge };

// Op::imm, bit for bit.
struct VideoForm {
    VideoOp what = VideoOp::add;
    uint8_t signs = 0;      // bits 0, 1, 2: a, b and the result are signed
    bool saturate = false;  // to the range of the result's parts
    // bits 0 to 3: parts that are written, the others being c's; bit 4: instead, c plus the sum of these parts
    uint8_t mask = 0;
    uint8_t select[4] = {};  // by part: which of a's and b's parts, a's first, are the operands: 4 bits for each
};
static_assert(sizeof(VideoForm) == sizeof(Op::imm));
inline constexpr uint8_t kVideoSum = 16;

int compute(VideoOp what, int a, int b) {
    switch (what) {
        case VideoOp::add:
            return a + b;
        case VideoOp::sub:
            return a - b;
        case VideoOp::average:  // ties go away from zero
            return (a + b + (a + b >= 0)) >> 1;
        case VideoOp::absolute_difference:
            return std::abs(a - b);
        case VideoOp::min:
            return std::min(a, b);
        case VideoOp::max:
            return std::max(a, b);
        case VideoOp::eq:
            return a == b;
        case VideoOp::ne:
            return a != b;
        case VideoOp::lt:
            return a < b;
        case VideoOp::le:
            return a <= b;
        case VideoOp::gt:
            return a > b;
        case VideoOp::ge:
            return a >= b;
    }
    return 0;
}

template <unsigned Parts>
void exec_video(Warp &w, const Op &op) {
    constexpr unsigned kBits = 32 / Parts;
    constexpr int kRange = 1 << kBits;
    const VideoForm form = std::bit_cast<VideoForm>(op.imm);
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b), *c = w.lanes<uint32_t>(op.c);
    const auto part = [](uint64_t both, unsigned which, bool sign) {
        const int value = static_cast<int>(both >> which * kBits & (kRange - 1));
        return sign && value >= kRange / 2 ? value - kRange : value;
    };
    const bool sign = form.signs & 4;
    const int least = sign ? -kRange / 2 : 0, most = sign ? kRange / 2 - 1 : kRange - 1;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned lane) {
        const uint64_t both = static_cast<uint64_t>(b[lane]) << 32 | a[lane];
        uint32_t result = c[lane];
        for (unsigned i = 0; i < Parts; ++i) {
            if (!(form.mask >> i & 1)) continue;
            int value = compute(form.what, part(both, form.select[i] & 0xf, form.signs & 1),
                                part(both, form.select[i] >> 4, form.signs & 2));
            if (form.saturate) value = std::clamp(value, least, most);
            if (form.mask & kVideoSum) {
                result += static_cast<uint32_t>(value);
            } else {
                const uint32_t place = static_cast<uint32_t>(kRange - 1) << i * kBits;
                result = (result & ~place) | (static_cast<uint32_t>(value) << i * kBits & place);
            }
        }
        return result;
    });
}

void exec_video2(Warp &w, const Op &op) {
    exec_video<2>(w, op);
}

void exec_video4(Warp &w, const Op &op) {
    exec_video<4>(w, op);
}

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

#define SIGNS ".{u32,s32}"
#define VIDEO(OPCODE, MODIFIERS)                                                                                       \
    {OPCODE "2" MODIFIERS, "d.part, a.part, b.part, c", OpClass::integer, Flow::straight, exec_video2, lower_video}, { \
        OPCODE "4" MODIFIERS, "d.part, a.part, b.part, c", OpClass::integer, Flow::straight, exec_video4, lower_video  \
    }

constexpr InstructionRow kRows[] = {
    // Video instructions
    VIDEO("vadd", SIGNS SIGNS SIGNS "{.sat,.add}"),          VIDEO("vsub", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vavrg", SIGNS SIGNS SIGNS "{.sat,.add}"),         VIDEO("vmin", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vmax", SIGNS SIGNS SIGNS "{.sat,.add}"),          VIDEO("vabsdiff", SIGNS SIGNS SIGNS "{.sat,.add}"),
    VIDEO("vset", SIGNS SIGNS ".{eq,ne,lt,le,gt,ge}{.add}"),
};

}  // namespace

std::span<const InstructionRow> video_rows() {
    return kRows;
}

}  // namespace warpsim
