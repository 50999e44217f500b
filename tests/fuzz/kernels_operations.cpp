// What each instruction computes, from the PTX manual; nothing of the simulator's is used.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels.h"

namespace fuzz {
namespace {

using u32 = uint32_t;
using s32 = int32_t;
using u64 = uint64_t;
using s64 = int64_t;

float f(u32 bits) {
    return std::bit_cast<float>(bits);
}

// A GPU's arithmetic gives one NaN only.
u32 bits(float value) {
    return std::isnan(value) ? 0x7fffffffu : std::bit_cast<u32>(value);
}

float lesser(float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}

template <class T>
u32 to_integer(float value) {
    constexpr double kLow = std::is_signed_v<T> ? -2147483648.0 : 0.0;
    constexpr double kHigh = std::is_signed_v<T> ? 2147483647.0 : 4294967295.0;
    if (std::isnan(value)) return 0;
    return static_cast<u32>(static_cast<T>(std::clamp(std::trunc(static_cast<double>(value)), kLow, kHigh)));
}

u32 permute(u32 a, u32 b, u32 selector) {
    const u64 both = u64{b} << 32 | a;
    u32 result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const u32 pick = selector >> (4 * i);
        u32 byte = (both >> (8 * (pick & 7))) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

u32 reverse(u32 a) {
    u32 result = 0;
    for (unsigned i = 0; i < 32; ++i) result |= (a >> i & 1) << (31 - i);
    return result;
}

// `length` bits of a from bit `first`; beyond bit 31 there are copies of the sign, or zeros.
u32 field(u32 a, u32 first, u32 length, bool is_signed) {
    first &= 0xff, length &= 0xff;
    if (!is_signed) {
        const u64 shifted = first < 32 ? a >> first : 0;
        return static_cast<u32>(length < 32 ? shifted & ((1ull << length) - 1) : shifted);
    }
    if (length == 0) return 0;
    const u32 sign = a >> std::min(first + length - 1, 31u) & 1;
    u32 result = 0;
    for (unsigned i = 0; i < 32; ++i) {
        const bool inside = i < length && first + i < 32;
        result |= (inside ? a >> (first + i) & 1 : sign) << i;
    }
    return result;
}

u32 dot(u32 a, u32 b, u32 c) {
    for (unsigned i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
    return c;
}

u32 magnitude(s32 a) {
    return a < 0 ? 0u - static_cast<u32>(a) : static_cast<u32>(a);
}

}  // namespace

const std::vector<Operation> kOperations = {
    {"add.u32", 2, false, [](u32 a, u32 b, u32) { return a + b; }},
    {"sub.s32", 2, false, [](u32 a, u32 b, u32) { return a - b; }},
    {"mul.lo.u32", 2, false, [](u32 a, u32 b, u32) { return a * b; }},
    {"mul.hi.u32", 2, false, [](u32 a, u32 b, u32) { return u32(u64{a} * b >> 32); }},
    {"mul.hi.s32", 2, false, [](u32 a, u32 b, u32) { return u32(s64{s32(a)} * s32(b) >> 32); }},
    {"mad.lo.s32", 3, false, [](u32 a, u32 b, u32 c) { return a * b + c; }},
    {"mad.hi.u32", 3, false, [](u32 a, u32 b, u32 c) { return u32(u64{a} * b >> 32) + c; }},
    {"mul24.lo.u32", 2, false, [](u32 a, u32 b, u32) { return (a & 0xffffff) * (b & 0xffffff); }},
    {"and.b32", 2, false, [](u32 a, u32 b, u32) { return a & b; }},
    {"or.b32", 2, false, [](u32 a, u32 b, u32) { return a | b; }},
    {"xor.b32", 2, false, [](u32 a, u32 b, u32) { return a ^ b; }},
    {"not.b32", 1, false, [](u32 a, u32, u32) { return ~a; }},
    {"cnot.b32", 1, false, [](u32 a, u32, u32) { return u32{a == 0}; }},
    {"shl.b32", 2, false, [](u32 a, u32 b, u32) { return b < 32 ? a << b : 0; }},
    {"shr.u32", 2, false, [](u32 a, u32 b, u32) { return b < 32 ? a >> b : 0; }},
    {"shr.s32", 2, false, [](u32 a, u32 b, u32) { return u32(s32(a) >> std::min(b, 31u)); }},
    {"min.u32", 2, false, [](u32 a, u32 b, u32) { return std::min(a, b); }},
    {"max.s32", 2, false, [](u32 a, u32 b, u32) { return u32(std::max(s32(a), s32(b))); }},
    {"abs.s32", 1, false, [](u32 a, u32, u32) { return magnitude(s32(a)); }},
    {"neg.s32", 1, false, [](u32 a, u32, u32) { return 0 - a; }},
    {"sad.u32", 3, false, [](u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }},
    {"sad.s32", 3, false, [](u32 a, u32 b, u32 c) { return c + (s32(a) < s32(b) ? b - a : a - b); }},
    {"popc.b32", 1, false, [](u32 a, u32, u32) { return u32(std::popcount(a)); }},
    {"clz.b32", 1, false, [](u32 a, u32, u32) { return u32(std::countl_zero(a)); }},
    {"brev.b32", 1, false, [](u32 a, u32, u32) { return reverse(a); }},
    {"bfind.u32", 1, false, [](u32 a, u32, u32) { return u32(31 - std::countl_zero(a)); }},
    {"bfe.u32", 3, false, [](u32 a, u32 b, u32 c) { return field(a, b, c, false); }},
    {"bfe.s32", 3, false, [](u32 a, u32 b, u32 c) { return field(a, b, c, true); }},
    {"prmt.b32", 3, false, [](u32 a, u32 b, u32 c) { return permute(a, b, c); }},
    {"shf.l.wrap.b32", 3, false, [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) << (c & 31) >> 32); }},
    {"shf.r.clamp.b32", 3, false, [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> std::min(c, 32u)); }},
    {"dp4a.u32.u32", 3, false, [](u32 a, u32 b, u32 c) { return dot(a, b, c); }},
    {"slct.b32.s32", 3, false, [](u32 a, u32 b, u32 c) { return s32(c) >= 0 ? a : b; }},
    {"cvt.s32.s8", 1, false, [](u32 a, u32, u32) { return u32(s32(int8_t(a))); }},
    {"cvt.u32.u16", 1, false, [](u32 a, u32, u32) { return u32(uint16_t(a)); }},
    {"div.u32", 2, false, [](u32 a, u32 b, u32) { return a / (b | 1); }, true},
    {"rem.u32", 2, false, [](u32 a, u32 b, u32) { return a % (b | 1); }, true},
    {"add.rn.f32", 2, true, [](u32 a, u32 b, u32) { return bits(f(a) + f(b)); }},
    {"sub.rn.f32", 2, true, [](u32 a, u32 b, u32) { return bits(f(a) - f(b)); }},
    {"mul.rn.f32", 2, true, [](u32 a, u32 b, u32) { return bits(f(a) * f(b)); }},
    {"fma.rn.f32", 3, true, [](u32 a, u32 b, u32 c) { return bits(std::fma(f(a), f(b), f(c))); }},
    {"div.rn.f32", 2, true, [](u32 a, u32 b, u32) { return bits(f(a) / f(b)); }},
    {"sqrt.rn.f32", 1, true, [](u32 a, u32, u32) { return bits(std::sqrt(f(a))); }},
    {"min.f32", 2, true, [](u32 a, u32 b, u32) { return bits(lesser(f(a), f(b))); }},
    {"max.f32", 2, true, [](u32 a, u32 b, u32) { return bits(-lesser(-f(a), -f(b))); }},
    {"cvt.rn.f32.s32", 1, false, [](u32 a, u32, u32) { return bits(static_cast<float>(s32(a))); }},
    {"cvt.rn.f32.u32", 1, false, [](u32 a, u32, u32) { return bits(static_cast<float>(a)); }},
    {"cvt.rzi.s32.f32", 1, true, [](u32 a, u32, u32) { return to_integer<s32>(f(a)); }},
    {"cvt.rzi.u32.f32", 1, true, [](u32 a, u32, u32) { return to_integer<u32>(f(a)); }},
};

const std::vector<WideOperation> kWideOperations = {
    {"mul.wide.u32", 2, 0, [](u32 a, u32 b, u64) { return u64{a} * b; }},
    {"mul.wide.s32", 2, 0, [](u32 a, u32 b, u64) { return u64(s64{s32(a)} * s32(b)); }},
    {"mad.wide.u32", 2, 1, [](u32 a, u32 b, u64 c) { return u64{a} * b + c; }},
    {"mad.wide.s32", 2, 1, [](u32 a, u32 b, u64 c) { return u64(s64{s32(a)} * s32(b)) + c; }},
    {"cvt.u64.u32", 1, 0, [](u32 a, u32, u64) { return u64{a}; }},
    {"cvt.s64.s32", 1, 0, [](u32 a, u32, u64) { return u64(s64{s32(a)}); }},
};

const std::vector<Comparison> kComparisons = {
    {"eq.u32", false, [](u32 a, u32 b) { return a == b; }},
    {"ne.s32", false, [](u32 a, u32 b) { return a != b; }},
    {"lt.u32", false, [](u32 a, u32 b) { return a < b; }},
    {"lo.u32", false, [](u32 a, u32 b) { return a < b; }},
    {"hs.u32", false, [](u32 a, u32 b) { return a >= b; }},
    {"le.s32", false, [](u32 a, u32 b) { return s32(a) <= s32(b); }},
    {"gt.s32", false, [](u32 a, u32 b) { return s32(a) > s32(b); }},
    {"lt.f32", true, [](u32 a, u32 b) { return f(a) < f(b); }},
    {"ge.f32", true, [](u32 a, u32 b) { return f(a) >= f(b); }},
    {"neu.f32", true, [](u32 a, u32 b) { return !(f(a) == f(b)); }},
    {"ltu.f32", true, [](u32 a, u32 b) { return !(f(a) >= f(b)); }},
    {"num.f32", true, [](u32 a, u32 b) { return !std::isnan(f(a)) && !std::isnan(f(b)); }},
};

}  // namespace fuzz
