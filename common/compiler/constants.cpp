#include "constants.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace compiler {

uint64_t lowest(uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

int64_t sign_extended(uint64_t value, unsigned bits) {
    return bits >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

namespace {

struct Format {
    int fraction_bits, exponent_bits;
};

Format format_of(const ir::Type *type) {
    switch (type->kind) {
        case ir::Kind::half:
            return {10, 5};
        case ir::Kind::bfloat:
            return {7, 8};
        case ir::Kind::single:
            return {23, 8};
        default:
            return {52, 11};
    }
}

template <class T>
std::optional<T> whole(std::string_view text, int base) {
    T value{};
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || rest != text.data() + text.size()) return {};
    return value;
}

// +inf, -inf, +qnan, -nan(0x1), +snan(0x1)
std::optional<uint64_t> special(std::string_view text, const ir::Type *type) {
    const auto [fraction_bits, exponent_bits] = format_of(type);
    const uint64_t sign = text[0] == '-' ? uint64_t{1} << (fraction_bits + exponent_bits) : 0;
    const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
    if (text == "+inf" || text == "-inf") return sign | infinity;
    if (text == "+qnan" || text == "-qnan") return sign | infinity | uint64_t{1} << (fraction_bits - 1);
    return {};
}

}  // namespace

uint64_t float_bits(double value, const ir::Type *type) {
    const auto [fraction_bits, exponent_bits] = format_of(type);
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint64_t sign = (bits >> 63) << (fraction_bits + exponent_bits);
    if (fraction_bits == 52) return bits;
    if (value == 0) return sign;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);  // 0.5 to 1
    const int biased = std::max(exponent - 1 + bias, 0);
    const int unit = std::max(exponent - 1, 1 - bias) - fraction_bits;  // of the last bit
    const uint64_t mantissa = static_cast<uint64_t>(std::nearbyint(std::ldexp(fraction, exponent - unit)));
    // A mantissa that is rounded up to the next power of two carries into the exponent, up to infinity.
    const uint64_t magnitude = biased > 0 ? (static_cast<uint64_t>(biased - 1) << fraction_bits) + mantissa : mantissa;
    const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
    return sign | std::min(magnitude, infinity);
}

std::optional<uint64_t> number_bits(std::string_view text, const ir::Type *type) {
    if (type->kind == ir::Kind::integer) {
        if (text[0] == '-') {
            const auto value = whole<int64_t>(text, 10);
            return value && type->bits <= 64 ? std::optional(lowest(static_cast<uint64_t>(*value), type->bits))
                                             : std::nullopt;
        }
        return whole<uint64_t>(text, 10);
    }
    if (!type->is_float()) return {};
    if (text.starts_with("f0x")) return whole<uint64_t>(text.substr(3), 16);
    if (text.starts_with("0xH") || text.starts_with("0xR")) return whole<uint64_t>(text.substr(3), 16);
    if (text.starts_with("0x")) {
        const auto bits = whole<uint64_t>(text.substr(2), 16);
        return bits ? std::optional(float_bits(std::bit_cast<double>(*bits), type)) : std::nullopt;
    }
    if (text.size() > 1 && (text[0] == '+' || text[0] == '-') && (text[1] == 'i' || text[1] == 'q'))
        return special(text, type);
    // Not every library has from_chars for these; nothing here sets a locale.
    const std::string number(text);
    char *end = nullptr;
    const bool is_single = type->kind == ir::Kind::single;  // rounded once
    const uint64_t bits = is_single ? std::bit_cast<uint32_t>(std::strtof(number.c_str(), &end))
                                    : float_bits(std::strtod(number.c_str(), &end), type);
    return !number.empty() && end == number.c_str() + number.size() ? std::optional(bits) : std::nullopt;
}

}  // namespace compiler
