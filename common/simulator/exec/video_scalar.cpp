// As the manual's pseudocode has it: sources are extended by their signs to 33 bits, the result to what it needs; it is
// saturated to the destination's part where that is asked for, then combined with c, and its low bits are kept.
#include "exec/video_scalar.h"

#include <algorithm>
#include <cstdlib>

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {
namespace {

using Wide = __int128;  // a source shifted left by 32, or the product of two

unsigned bits_of(VideoPart part) {
    return part == VideoPart::word ? 32 : part < VideoPart::h0 ? 8 : 16;
}
unsigned place_of(VideoPart part) {
    switch (part) {
        case VideoPart::b1:
            return 8;
        case VideoPart::b2:
        case VideoPart::h1:
            return 16;
        case VideoPart::b3:
            return 24;
        default:
            return 0;
    }
}

int64_t extract(uint32_t word, VideoPart part, bool is_signed) {
    const unsigned unused = 32 - bits_of(part);
    const uint32_t top = word >> place_of(part) << unused;
    return is_signed ? int64_t(int32_t(top) >> unused) : int64_t(top >> unused);
}

Wide clamp(Wide value, unsigned bits, bool is_signed) {
    const Wide least = is_signed ? -(Wide(1) << (bits - 1)) : 0;
    const Wide most = (Wide(1) << (is_signed ? bits - 1 : bits)) - 1;
    return std::clamp(value, least, most);
}

Wide multiply_add(const ScalarVideoForm &form, int64_t a, int64_t b, uint32_t c) {
    Wide product = Wide(a) * b;
    bool one = form.plus;
    if (form.minus_product) {
        product = ~product;
        one = true;
    } else if (form.minus_c) {
        c = ~c;
        one = true;
    }
    product += form.d_signed ? Wide(int32_t(c)) : Wide(c);
    product += one;
    // 64 bits of it are left, as a number of the result's sign.
    const uint64_t result = uint64_t(product >> form.shift);
    return form.d_signed ? Wide(int64_t(result)) : Wide(result);
}

Wide compute(const ScalarVideoForm &form, int64_t a, int64_t b, uint32_t c) {
    switch (form.what) {
        case ScalarVideoOp::add:
            return a + b;
        case ScalarVideoOp::sub:
            return a - b;
        case ScalarVideoOp::absolute_difference:
            return std::abs(a - b);
        case ScalarVideoOp::min:
            return std::min(a, b);
        case ScalarVideoOp::max:
            return std::max(a, b);
        case ScalarVideoOp::shl:
        case ScalarVideoOp::shr: {
            const unsigned by = unsigned(form.wrap ? b & 31 : std::min<int64_t>(b, 32));
            return form.what == ScalarVideoOp::shl ? Wide(a) * (Wide(1) << by) : Wide(a) >> by;
        }
        case ScalarVideoOp::mad:
            return multiply_add(form, a, b, c);
        case ScalarVideoOp::eq:
            return a == b;
        case ScalarVideoOp::ne:
            return a != b;
        case ScalarVideoOp::lt:
            return a < b;
        case ScalarVideoOp::le:
            return a <= b;
        case ScalarVideoOp::gt:
            return a > b;
        case ScalarVideoOp::ge:
            return a >= b;
    }
    return 0;
}

}  // namespace

void exec_scalar_video(Warp &w, const Op &op) {
    const ScalarVideoForm form = unpack<ScalarVideoForm>(op.imm);
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b);
    const uint32_t *c = op.c == kNoSlot ? nullptr : w.lanes<uint32_t>(op.c);
    write_lanes<uint32_t>(w, op.dst, [=](unsigned lane) -> uint32_t {
        const uint32_t third = c ? c[lane] : 0;
        Wide value =
            compute(form, extract(a[lane], form.a, form.a_signed), extract(b[lane], form.b, form.b_signed), third);
        if (form.saturate) value = clamp(value, bits_of(form.d), form.d_signed);
        const Wide other = form.d_signed ? Wide(int32_t(third)) : Wide(third);
        if (form.second == VideoSecond::add) value += other;
        if (form.second == VideoSecond::min) value = std::min(value, other);
        if (form.second == VideoSecond::max) value = std::max(value, other);
        if (form.d == VideoPart::word) return uint32_t(value);
        const uint32_t ones = ((1u << bits_of(form.d)) - 1) << place_of(form.d);
        return (third & ~ones) | (uint32_t(value) << place_of(form.d) & ones);
    });
}

}  // namespace warpsim
