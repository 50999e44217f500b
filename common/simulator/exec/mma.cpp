// mma.sync. Accumulation: products are exact, also those that fp32 could not hold (two 11-bit or 8-bit significands fit
// into its 24 bits, their exponents need not), and each element is C + (((p0 + p1) + p2) + ... + p[K-1]), rounded to
// fp32, to nearest even, after every addition; an f16 result is rounded once more at the end. That is the same on every
// CPU. GPUs add in wider groups and truncate, so their last bits differ: with s = sum of |p| + |C|, this order is
// within K * 2^-24 * s of the exact value. Integers are exact modulo 2^32, or clamped with .satfinite. NaN results are
// 0x7fffffff (0x7fff for f16).
#include "exec/mma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/program.h"
#include "core/warp.h"
#include "exec/convert_format.h"
#include "exec/half.h"

namespace warpsim {
namespace {

typedef float Floats __attribute__((vector_size(32), may_alias));
typedef int32_t Ints __attribute__((vector_size(32), may_alias));

// The kinds of elements: how a register's slot becomes a tile of 8 rows and 4 * kPerRegister columns of Value.
// kProductsFit: Value holds every product of two elements exactly.
struct HalfElement {
    using Value = float;
    static constexpr bool kProductsFit = true;  // from 2^-48 to 2^32
    static constexpr unsigned kPerRegister = 2;
    static void widen(const std::byte *slot, float *tile) {
        F16::widen(reinterpret_cast<const uint16_t *>(slot), tile, 64);
    }
};
struct BfloatElement {
    using Value = float;
    static constexpr bool kProductsFit = false;
    static constexpr unsigned kPerRegister = 2;
    static void widen(const std::byte *slot, float *tile) {
        uint16_t bits[64];
        std::memcpy(bits, slot, sizeof bits);
        Bf16::widen(bits, tile, 64);
    }
};
struct Float8Element {
    using Value = float;
    static constexpr bool kProductsFit = true;  // from 2^-32 to 2^32
    static constexpr unsigned kPerRegister = 4;
    static void widen(const std::byte *slot, float *tile, const float (&values)[256]) {
        for (unsigned i = 0; i < 128; ++i) tile[i] = values[static_cast<uint8_t>(slot[i])];
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
    static void widen(const std::byte *slot, float *tile) {
        static const Values values(Type);
        Float8Element::widen(slot, tile, values.of);
    }
};
template <bool Signed>
struct NibbleElement {
    using Value = int32_t;
    static constexpr bool kProductsFit = true;
    static constexpr unsigned kPerRegister = 8;
    static void widen(const std::byte *slot, int32_t *tile) {
        for (unsigned i = 0; i < 256; ++i) {
            const uint32_t nibble = static_cast<uint32_t>(slot[i / 2]) >> (i % 2 * 4) & 0xf;
            tile[i] = Signed ? static_cast<int32_t>(nibble << 28) >> 28 : static_cast<int32_t>(nibble);
        }
    }
};
struct Tf32Element {
    using Value = float;
    static constexpr bool kProductsFit = false;
    static constexpr unsigned kPerRegister = 1;
    static void widen(const std::byte *slot, float *tile) {
        uint32_t bits[32];
        std::memcpy(bits, slot, sizeof bits);
        for (uint32_t &word : bits) word &= 0xffffe000u;  // the low 13 bits are not looked at
        std::memcpy(tile, bits, sizeof bits);
    }
};
template <class Byte>
struct ByteElement {
    using Value = int32_t;
    static constexpr bool kProductsFit = true;
    static constexpr unsigned kPerRegister = 4;
    static void widen(const std::byte *slot, int32_t *tile) {
        Byte bytes[128];
        std::memcpy(bytes, slot, sizeof bytes);
        for (unsigned i = 0; i < 128; ++i) tile[i] = bytes[i];
    }
};

// A vector over the 8 columns of C, even ones first: the order in which they lie in C's registers. The product is
// exact. Fits: fp32 holds it, so that a CPU without fused multiply-add may multiply and add.
template <bool Fits>
inline Floats multiply_add(float a, Floats b, Floats sum) {
#if defined(__FMA__)
    const Floats spread = {a, a, a, a, a, a, a, a};
    return _mm256_fmadd_ps(spread, b, sum);
#else
    if constexpr (Fits) return a * b + sum;
    for (unsigned i = 0; i < 8; ++i) sum[i] = __builtin_fmaf(a, b[i], sum[i]);
    return sum;
#endif
}
template <bool>
inline Ints multiply_add(int32_t a, Ints b, Ints sum) {
    return a * b + sum;
}

// Whether fp32 holds every product of an element of `a` and one of `b`: none overflows, and none but zero is subnormal
// (at most 22 bits wide, it would lose some of them below 2^-126). NaNs and what they make are NaN either way.
inline bool products_fit(const float *a, unsigned a_count, const float *b, unsigned b_count) {
#if defined(__FMA__)
    (void)a, (void)a_count, (void)b, (void)b_count;
    return true;  // fused: nobody needs to know
#else
    struct Range {
        float least = HUGE_VALF, most = 0;
        void add(const float *x, unsigned n) {
            for (unsigned i = 0; i < n; ++i) {
                const float magnitude = std::fabs(x[i]);
                least = magnitude > 0 && magnitude < least ? magnitude : least;
                most = magnitude > most ? magnitude : most;
            }
        }
    } ra, rb;
    ra.add(a, a_count);
    rb.add(b, b_count);
    return double(ra.least) * rb.least >= 0x1p-126 && double(ra.most) * rb.most < 0x1p127;
#endif
}

template <class Value>
struct VectorOf;
template <>
struct VectorOf<float> {
    using type = Floats;
};
template <>
struct VectorOf<int32_t> {
    using type = Ints;
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

inline void canonical_nans(Floats &x) {
    const Ints nan = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    const Ints good = x == x;
    x = reinterpret_cast<Floats>((reinterpret_cast<Ints>(x) & good) | (nan & ~good));
}

// sums[row] = A's row times B, with columns in C's order.
template <class ElementA, class ElementB, unsigned K>
inline void multiply(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots,
                     typename VectorOf<typename ElementA::Value>::type (&sums)[16]) {
    using Value = typename ElementA::Value;
    using Vector = typename VectorOf<Value>::type;
    constexpr unsigned kColumns = 4 * ElementA::kPerRegister, kTiles = K / kColumns;
    static constexpr unsigned kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

    alignas(64) Value b[kTiles][8][kColumns];
    Vector columns[K];
    for (unsigned t = 0; t < kTiles; ++t) {
        ElementB::widen(w.regs + b_slots[t], &b[t][0][0]);
        if constexpr (kColumns % 8 == 0) {
            for (unsigned part = 0; part < kColumns; part += 8) {
                Vector rows[8];
                for (unsigned i = 0; i < 8; ++i) std::memcpy(&rows[i], &b[t][kOrder[i]][part], sizeof(Vector));
                transpose8(rows);
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + part + i] = rows[i];
            }
        } else {
            for (unsigned j = 0; j < kColumns; ++j)
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + j][i] = b[t][kOrder[i]][j];
        }
    }
    alignas(64) Value a[kTiles][2][8][kColumns];
    for (unsigned i = 0; i < 2 * kTiles; ++i) ElementA::widen(w.regs + a_slots[i], &a[i / 2][i % 2][0][0]);
    const auto accumulate = [&]<bool Fits>() {
        for (unsigned half = 0; half < 2; ++half) {
            Vector sum[8] = {};
            for (unsigned t = 0; t < kTiles; ++t)
                for (unsigned j = 0; j < kColumns; ++j)
#pragma GCC unroll 8
                    for (unsigned row = 0; row < 8; ++row)
                        sum[row] = multiply_add<Fits>(a[t][half][row][j], columns[t * kColumns + j], sum[row]);
            for (unsigned row = 0; row < 8; ++row) sums[8 * half + row] = sum[row];
        }
    };
    if constexpr (!ElementA::kProductsFit) {
        if (!products_fit(&a[0][0][0][0], 16 * K, &b[0][0][0], 8 * K)) return accumulate.template operator()<false>();
    }
    accumulate.template operator()<true>();
}

// Copies a result register to its slot, in the lanes that execute.
inline void store(const Warp &w, uint32_t slot, const void *lanes) {
    if (w.exec == kAllLanes) {
        std::memcpy(w.regs + slot, lanes, 4 * kLanes);
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
        if (w.exec >> lane & 1)
            std::memcpy(w.regs + slot + 4 * lane, static_cast<const std::byte *>(lanes) + 4 * lane, 4);
}

// A 16x8 result of 32-bit elements as its four registers: each vector's halves belong to two of them.
template <class Vector>
inline void store_words(const Warp &w, const uint32_t *slots, const Vector (&sums)[16]) {
    alignas(64) std::byte registers[4][4 * kLanes];
    for (unsigned row = 0; row < 16; ++row) {
        std::byte half[32];
        std::memcpy(half, &sums[row], sizeof half);
        std::memcpy(registers[row / 8 * 2] + row % 8 * 16, half, 16);
        std::memcpy(registers[row / 8 * 2 + 1] + row % 8 * 16, half + 16, 16);
    }
    for (unsigned i = 0; i < 4; ++i) store(w, slots[i], registers[i]);
}

template <class Vector>
inline Vector load_words(const Warp &w, const uint32_t *slots, unsigned row) {
    Vector c;
    std::byte both[32];
    std::memcpy(both, w.regs + slots[row / 8 * 2] + row % 8 * 16, 16);
    std::memcpy(both + 16, w.regs + slots[row / 8 * 2 + 1] + row % 8 * 16, 16);
    std::memcpy(&c, both, sizeof c);
    return c;
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_float(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    Floats sums[16];
    multiply<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, sums);
    for (unsigned row = 0; row < 16; ++row) {
        sums[row] += load_words<Floats>(w, slots + 4 + kA + kA / 2, row);
        canonical_nans(sums[row]);
    }
    store_words(w, slots, sums);
}

// f16 accumulators: pairs of neighbouring columns share a register.
template <class Element, unsigned K, class ElementB = Element>
void exec_mma_half(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * Element::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    Floats sums[16];
    multiply<Element, ElementB, K>(w, slots + 2, slots + 2 + kA, sums);
    for (unsigned half = 0; half < 2; ++half) {
        alignas(64) float tile[8][8];
        F16::widen(reinterpret_cast<const uint16_t *>(w.regs + slots[2 + kA + kA / 2 + half]), &tile[0][0], 64);
        for (unsigned row = 0; row < 8; ++row)
            for (unsigned i = 0; i < 8; ++i) {
                const unsigned column = i < 4 ? 2 * i : 2 * i - 7;
                tile[row][column] = canonical(tile[row][column] + sums[8 * half + row][i]);
            }
        alignas(64) uint16_t bits[64];
        F16::narrow(&tile[0][0], bits, 64);
        store(w, slots[half], bits);
    }
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_integer(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    Ints sums[16];
    multiply<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, sums);
    for (unsigned row = 0; row < 16; ++row) {
        const Ints c = load_words<Ints>(w, slots + 4 + kA + kA / 2, row);
        if (op.extra & kMmaSaturate) {
            for (unsigned i = 0; i < 8; ++i)
                sums[row][i] =
                    static_cast<int32_t>(std::clamp<int64_t>(int64_t(sums[row][i]) + c[i], INT32_MIN, INT32_MAX));
        } else {
            using Unsigned = uint32_t __attribute__((vector_size(32)));
            sums[row] = reinterpret_cast<Ints>(reinterpret_cast<Unsigned>(sums[row]) + reinterpret_cast<Unsigned>(c));
        }
    }
    store_words(w, slots, sums);
}

using S8 = ByteElement<int8_t>;
using U8 = ByteElement<uint8_t>;
using S4 = NibbleElement<true>;
using U4 = NibbleElement<false>;
using E4m3 = Float8<ptx::Type::e4m3>;
using E5m2 = Float8<ptx::Type::e5m2>;

// All pairs of two integer types, and of the two 8-bit floats, for one depth.
#define INTEGERS(K, S, U, SNAME, UNAME, ...)                                                            \
    {"m16n8k" #K ".row.col.s32." SNAME "." SNAME ".s32", exec_mma_integer<S, S, K>, __VA_ARGS__},       \
        {"m16n8k" #K ".row.col.s32." SNAME "." UNAME ".s32", exec_mma_integer<S, U, K>, __VA_ARGS__},   \
        {"m16n8k" #K ".row.col.s32." UNAME "." SNAME ".s32", exec_mma_integer<U, S, K>, __VA_ARGS__}, { \
        "m16n8k" #K ".row.col.s32." UNAME "." UNAME ".s32", exec_mma_integer<U, U, K>, __VA_ARGS__      \
    }
#define FLOATS8(K, A, B, TYPES, ...)                                                          \
    {"m16n8k" #K ".row.col.f32." TYPES ".f32", exec_mma_float<A, B, K>, 4, __VA_ARGS__, 4}, { \
        "m16n8k" #K ".row.col.f16." TYPES ".f16", exec_mma_half<A, K, B>, 2, __VA_ARGS__, 2   \
    }

constexpr MmaForm kForms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", exec_mma_float<HalfElement, HalfElement, 8>, 4, 2, 1, 4},
    {"m16n8k16.row.col.f32.f16.f16.f32", exec_mma_float<HalfElement, HalfElement, 16>, 4, 4, 2, 4},
    {"m16n8k8.row.col.f16.f16.f16.f16", exec_mma_half<HalfElement, 8>, 2, 2, 1, 2},
    {"m16n8k16.row.col.f16.f16.f16.f16", exec_mma_half<HalfElement, 16>, 2, 4, 2, 2},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", exec_mma_float<BfloatElement, BfloatElement, 8>, 4, 2, 1, 4},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", exec_mma_float<BfloatElement, BfloatElement, 16>, 4, 4, 2, 4},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", exec_mma_float<Tf32Element, Tf32Element, 4>, 4, 2, 1, 4},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", exec_mma_float<Tf32Element, Tf32Element, 8>, 4, 4, 2, 4},
    FLOATS8(16, E4m3, E4m3, "e4m3.e4m3", 2, 1),
    FLOATS8(16, E4m3, E5m2, "e4m3.e5m2", 2, 1),
    FLOATS8(16, E5m2, E4m3, "e5m2.e4m3", 2, 1),
    FLOATS8(16, E5m2, E5m2, "e5m2.e5m2", 2, 1),
    FLOATS8(32, E4m3, E4m3, "e4m3.e4m3", 4, 2),
    FLOATS8(32, E4m3, E5m2, "e4m3.e5m2", 4, 2),
    FLOATS8(32, E5m2, E4m3, "e5m2.e4m3", 4, 2),
    FLOATS8(32, E5m2, E5m2, "e5m2.e5m2", 4, 2),
    INTEGERS(16, S8, U8, "s8", "u8", 4, 2, 1, 4),
    INTEGERS(32, S8, U8, "s8", "u8", 4, 4, 2, 4),
    INTEGERS(32, S4, U4, "s4", "u4", 4, 2, 1, 4),
    INTEGERS(64, S4, U4, "s4", "u4", 4, 4, 2, 4),
};

}  // namespace

const MmaForm *find_mma(std::string_view name) {
    for (const MmaForm &form : kForms)
        if (form.name == name) return &form;
    const MmaForm *form = find_mma_small(name);
    return form ? form : find_mma_double(name);
}

}  // namespace warpsim
