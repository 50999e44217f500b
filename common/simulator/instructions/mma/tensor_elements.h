// Elements of the tensor core's matrices, and tiles of them as vectors: what mma.sync and wgmma share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/types.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/convert/convert.h"

namespace warpsim {

typedef float Floats8 __attribute__((vector_size(32), may_alias));
typedef int32_t Ints8 __attribute__((vector_size(32), may_alias));

// The kinds of elements: how `count` of them (a multiple of 16) become Values. A register's slot is a tile of 8 rows
// and 4 * kPerRegister columns. kLeast: the least exponent of floats, which subnormal numbers have.
struct HalfElement {
    using Value = float;
    static constexpr unsigned kPerRegister = 2;
    static constexpr int kLeast = -14;
    static void widen(const std::byte *from, float *to, unsigned count) {
        F16::widen(reinterpret_cast<const uint16_t *>(from), to, count);
    }
};
struct BfloatElement {
    using Value = float;
    static constexpr unsigned kPerRegister = 2;
    static constexpr int kLeast = -126;
    static void widen(const std::byte *from, float *to, unsigned count) {
        Bf16::widen(reinterpret_cast<const uint16_t *>(from), to, count);
    }
};
struct Float8Element {
    using Value = float;
    static constexpr unsigned kPerRegister = 4;
    static void widen(const std::byte *from, float *to, unsigned count, const float (&values)[256]) {
        for (unsigned i = 0; i < count; ++i) to[i] = values[static_cast<uint8_t>(from[i])];
    }
    struct Values {
        float of[256];
        explicit Values(ptx::Type type) {
            for (unsigned bits = 0; bits < 256; ++bits)
                of[bits] = std::bit_cast<float>(
                    static_cast<uint32_t>(pack_float(unpack_float(bits, *float_format(type)),
                                                     *float_format(ptx::Type::f32), Round::nearest_even, false)));
        }
    };
};
template <ptx::Type Type>
struct Float8 : Float8Element {
    static constexpr int kLeast = Type == ptx::Type::e4m3 ? -6 : -14;
    static void widen(const std::byte *from, float *to, unsigned count) {
        static const Values values(Type);
        Float8Element::widen(from, to, count, values.of);
    }
};
template <bool Signed>
struct NibbleElement {
    using Value = int32_t;
    static constexpr unsigned kPerRegister = 8;
    static void widen(const std::byte *from, int32_t *to, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            const uint32_t nibble = static_cast<uint32_t>(from[i / 2]) >> (i % 2 * 4) & 0xf;
            to[i] = Signed ? static_cast<int32_t>(nibble << 28) >> 28 : static_cast<int32_t>(nibble);
        }
    }
};
struct Tf32Element {
    using Value = float;
    static constexpr unsigned kPerRegister = 1;
    static constexpr int kLeast = -126;
    static void widen(const std::byte *from, float *to, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            uint32_t bits;
            std::memcpy(&bits, from + 4 * i, sizeof bits);
            to[i] = std::bit_cast<float>(bits & 0xffffe000u);  // the low 13 bits are not looked at
        }
    }
};
template <class Byte>
struct ByteElement {
    using Value = int32_t;
    static constexpr unsigned kPerRegister = 4;
    static void widen(const std::byte *from, int32_t *to, unsigned count) {
        const Byte *bytes = reinterpret_cast<const Byte *>(from);
        for (unsigned i = 0; i < count; ++i) to[i] = bytes[i];
    }
};

template <class Value>
struct VectorOf;
template <>
struct VectorOf<float> {
    using type = Floats8;
};
template <>
struct VectorOf<int32_t> {
    using type = Ints8;
};

// Turns rows into columns.
template <class Vector>
inline void transpose8(Vector (&rows)[8]) {
    using Mask = int32_t __attribute__((vector_size(32)));
    constexpr Mask low1 = {0, 8, 2, 10, 4, 12, 6, 14}, high1 = {1, 9, 3, 11, 5, 13, 7, 15};
    constexpr Mask low2 = {0, 1, 8, 9, 4, 5, 12, 13}, high2 = {2, 3, 10, 11, 6, 7, 14, 15};
    constexpr Mask low4 = {0, 1, 2, 3, 8, 9, 10, 11}, high4 = {4, 5, 6, 7, 12, 13, 14, 15};
    const auto stage = [&](unsigned distance, Mask low, Mask high) {
        for (unsigned i = 0; i < 8; ++i) {
            if (i & distance) continue;
            const Vector a = rows[i], b = rows[i + distance];
            rows[i] = __builtin_shuffle(a, b, low);
            rows[i + distance] = __builtin_shuffle(a, b, high);
        }
    };
    stage(1, low1, high1);
    stage(2, low2, high2);
    stage(4, low4, high4);
}

using S8 = ByteElement<int8_t>;
using U8 = ByteElement<uint8_t>;
using S4 = NibbleElement<true>;
using U4 = NibbleElement<false>;
using E4m3 = Float8<ptx::Type::e4m3>;
using E5m2 = Float8<ptx::Type::e5m2>;

// The columns of a tile of 8, even ones first: the order in which C's registers hold them.
inline constexpr unsigned kColumnOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

}  // namespace warpsim
