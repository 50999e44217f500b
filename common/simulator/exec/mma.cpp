// mma.sync. Sums of floats are formed as exec/tensor_sum.h says, integers are exact modulo 2^32, or clamped with
// .satfinite.
#include "exec/mma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/program.h"
#include "core/warp.h"
#include "exec/convert_format.h"
#include "exec/half.h"
#include "exec/tensor_elements.h"
#include "exec/tensor_sum.h"
#include "exec/tensor_sum_mma.h"

namespace warpsim {
namespace {

inline Ints8 multiply_add(int32_t a, Ints8 b, Ints8 sum) {
    return a * b + sum;
}

// B's tiles with rows of K elements for each of its columns, in C's order: columns[k] is row k of the matrix.
template <class Element, unsigned K, class Vector>
inline void load_columns(const Warp &w, const uint32_t *slots, Vector (&columns)[K]) {
    using Value = typename Element::Value;
    constexpr unsigned kColumns = 4 * Element::kPerRegister, kTiles = K / kColumns;
    alignas(64) Value b[8][kColumns];
    for (unsigned t = 0; t < kTiles; ++t) {
        Element::widen(w.regs + slots[t], &b[0][0], 8 * kColumns);
        if constexpr (kColumns % 8 == 0) {
            for (unsigned part = 0; part < kColumns; part += 8) {
                Vector rows[8];
                for (unsigned i = 0; i < 8; ++i) std::memcpy(&rows[i], &b[kColumnOrder[i]][part], sizeof(Vector));
                transpose8(rows);
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + part + i] = rows[i];
            }
        } else {
            for (unsigned j = 0; j < kColumns; ++j)
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + j][i] = b[kColumnOrder[i]][j];
        }
    }
}

// A, row by row.
template <class Element, unsigned K>
inline void load_rows(const Warp &w, const uint32_t *slots, typename Element::Value *a) {
    constexpr unsigned kColumns = 4 * Element::kPerRegister, kTiles = K / kColumns;
    if constexpr (kTiles == 1) {
        for (unsigned i = 0; i < 2; ++i) Element::widen(w.regs + slots[i], a + i * 8 * K, 8 * K);
    } else {
        alignas(64) typename Element::Value tile[8][kColumns];
        for (unsigned i = 0; i < 2 * kTiles; ++i) {
            Element::widen(w.regs + slots[i], &tile[0][0], 8 * kColumns);
            for (unsigned row = 0; row < 8; ++row)
                std::memcpy(a + (i % 2 * 8 + row) * K + i / 2 * kColumns, tile[row], sizeof tile[row]);
        }
    }
}

// sums[row] = A's row times B, with columns in C's order.
template <class ElementA, class ElementB, unsigned K>
inline void multiply(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, Ints8 (&sums)[16]) {
    Ints8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) int32_t a[16][K];
    load_rows<ElementA, K>(w, a_slots, &a[0][0]);
    for (unsigned half = 0; half < 2; ++half) {
        Ints8 sum[8] = {};
        for (unsigned k = 0; k < K; ++k)
#pragma GCC unroll 8
            for (unsigned row = 0; row < 8; ++row) sum[row] = multiply_add(a[8 * half + row][k], columns[k], sum[row]);
        for (unsigned row = 0; row < 8; ++row) sums[8 * half + row] = sum[row];
    }
}

// The same for floats, d included: on entry C, on return the results. odd: for f16, see SumRule.
template <class ElementA, class ElementB, unsigned K>
inline void multiply_add_floats(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, float *d, bool odd) {
    Floats8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) float a[16 * K + 16];
    alignas(64) int16_t a_exponents[16 * K + 16], b_exponents[8 * K];
    load_rows<ElementA, K>(w, a_slots, a);
    const float *b = reinterpret_cast<const float *>(columns);
    factor_exponents(a, a_exponents, 16 * K, ElementA::kLeast);
    factor_exponents(b, b_exponents, 8 * K, ElementB::kLeast);
    exact_sums_of_8_columns({a, b, a_exponents, b_exponents, d, 16, K}, {false, odd});
}

// D as its registers hold it: a sum of f16, rounded to odd, is rounded to nearest.
inline void round_sums(float *d, bool half) {
    if (!half) return;
    alignas(64) uint16_t bits[128];
    F16::narrow(d, bits, 128);
    F16::widen(bits, d, 128);
}

// The same for 8-bit floats, as exec/tensor_sum.h says. half: D is f16.
template <class ElementA, class ElementB, unsigned K>
inline void multiply_add_floats8(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, float *d, bool half) {
    Floats8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) float a[16][K];
    load_rows<ElementA, K>(w, a_slots, &a[0][0]);
    alignas(64) float sums[16 * 8] = {};
    for (unsigned part = 0; part < 2; ++part) {
        alignas(64) float a_part[16 * K / 2 + 16], b_part[8 * K / 2];
        alignas(64) int16_t a_exponents[16 * K / 2 + 16], b_exponents[8 * K / 2];
        for (unsigned i = 0; i < K / 2; ++i) {
            const unsigned k = i / 2 * 4 + 2 * part + i % 2;
            for (unsigned row = 0; row < 16; ++row) a_part[row * K / 2 + i] = a[row][k];
            std::memcpy(b_part + 8 * i, &columns[k], sizeof columns[k]);
        }
        factor_exponents(a_part, a_exponents, 8 * K, HalfElement::kLeast);
        factor_exponents(b_part, b_exponents, 4 * K, HalfElement::kLeast);
        exact_sums_of_8_columns({a_part, b_part, a_exponents, b_exponents, sums, 16, K / 2, part == 1}, {false, half});
        round_sums(sums, half);
    }
    for (unsigned i = 0; i < 128; ++i) {
        d[i] += sums[i];
        if (std::isnan(d[i])) d[i] = std::bit_cast<float>(0x7fffffffu);
    }
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

// By vectors of rows, where they can: false if not.
template <class Pairs, unsigned K>
inline bool multiply_pairs(const Warp &w, const uint32_t *slots) {
    if (!tensor::kHasRowVectors || w.exec != kAllLanes) return false;
    constexpr unsigned kA = K / 4, kB = K / 8;
    std::byte *registers[8 + kA + kB];
    for (unsigned i = 0; i < 8 + kA + kB; ++i) registers[i] = w.regs + slots[i];
    return tensor::mma_of_pairs<Pairs, K / 2>(registers + 4, registers + 4 + kA, registers + 4 + kA + kB, registers);
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_float(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    if constexpr (ElementA::kPerRegister == 2) {
        using Pairs = std::conditional_t<ElementA::kLeast == -14, tensor::HalfPairs, tensor::BfloatPairs>;
        if (multiply_pairs<Pairs, K>(w, slots)) return;
    }
    alignas(64) Floats8 sums[16];
    for (unsigned row = 0; row < 16; ++row) sums[row] = load_words<Floats8>(w, slots + 4 + kA + kA / 2, row);
    float *d = reinterpret_cast<float *>(sums);
    if constexpr (ElementA::kPerRegister == 4)
        multiply_add_floats8<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, d, false);
    else
        multiply_add_floats<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, d, false);
    store_words(w, slots, sums);
}

// f16 accumulators: pairs of neighbouring columns share a register.
template <class Element, unsigned K, class ElementB = Element>
void exec_mma_half(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * Element::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    alignas(64) float tile[16][8], sums[16][8];
    for (unsigned half = 0; half < 2; ++half)
        F16::widen(reinterpret_cast<const uint16_t *>(w.regs + slots[2 + kA + kA / 2 + half]), tile[8 * half], 64);
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) sums[row][i] = tile[row][kColumnOrder[i]];
    if constexpr (Element::kPerRegister == 4)
        multiply_add_floats8<Element, ElementB, K>(w, slots + 2, slots + 2 + kA, &sums[0][0], true);
    else
        multiply_add_floats<Element, ElementB, K>(w, slots + 2, slots + 2 + kA, &sums[0][0], true);
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) tile[row][kColumnOrder[i]] = sums[row][i];
    for (unsigned half = 0; half < 2; ++half) {
        alignas(64) uint16_t bits[64];
        F16::narrow(tile[8 * half], bits, 64);
        store(w, slots[half], bits);
    }
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_integer(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    Ints8 sums[16];
    multiply<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, sums);
    for (unsigned row = 0; row < 16; ++row) {
        const Ints8 c = load_words<Ints8>(w, slots + 4 + kA + kA / 2, row);
        if (op.extra & kMmaSaturate) {
            for (unsigned i = 0; i < 8; ++i)
                sums[row][i] =
                    static_cast<int32_t>(std::clamp<int64_t>(int64_t(sums[row][i]) + c[i], INT32_MIN, INT32_MAX));
        } else {
            using Unsigned = uint32_t __attribute__((vector_size(32)));
            sums[row] = reinterpret_cast<Ints8>(reinterpret_cast<Unsigned>(sums[row]) + reinterpret_cast<Unsigned>(c));
        }
    }
    store_words(w, slots, sums);
}

// All pairs of two integer types, and of the two 8-bit floats, for one depth.
#define INTEGERS(K, S, U, SNAME, UNAME, ...)                                                            \
    {"m16n8k" #K ".row.col.s32." SNAME "." SNAME ".s32", exec_mma_integer<S, S, K>, __VA_ARGS__},       \
        {"m16n8k" #K ".row.col.s32." SNAME "." UNAME ".s32", exec_mma_integer<S, U, K>, __VA_ARGS__},   \
        {"m16n8k" #K ".row.col.s32." UNAME "." SNAME ".s32", exec_mma_integer<U, S, K>, __VA_ARGS__}, { \
        "m16n8k" #K ".row.col.s32." UNAME "." UNAME ".s32", exec_mma_integer<U, U, K>, __VA_ARGS__      \
    }
#define FLOATS8(K, A, B, TYPES, ...)                                                        \
    {"m16n8k" #K ".row.col.f32." TYPES ".f32", exec_mma_float<A, B, K>, 4, __VA_ARGS__, 4}, \
        {"m16n8k" #K ".row.col.f16." TYPES ".f16", exec_mma_half<A, K, B>, 2, __VA_ARGS__, 2}

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
