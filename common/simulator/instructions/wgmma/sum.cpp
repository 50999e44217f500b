#include "instructions/wgmma/wgmma.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "instructions/mma/tensor_sum.h"
#include "instructions/mma/tensor_sum_vector.h"

namespace warpsim {
namespace {

using namespace tensor;

// Vectors lie as D's registers do, which hold 8 rows of every other one of 8 columns: 4 numbers to a row, row by row.
// So D is read and written as it is. What is summed at a time, a block, is four vectors: 4 columns of 16 rows (of 8,
// where vectors have 8 elements).
constexpr unsigned kAllRows = 64, kMostColumns = 256, kRegisterRows = 8;
constexpr unsigned kQuad = 4, kVectors = 4;  // columns of a row side by side; vectors of a block
constexpr unsigned kVectorRows = kVector / kQuad, kBlockRows = kVectors * kVectorRows, kBlock = kVectors * kVector;

typedef int8_t Bytes __attribute__((vector_size(kBlock), may_alias));
typedef uint32_t Quads __attribute__((vector_size(kBlock), may_alias));  // of four bytes
typedef float Floats4 __attribute__((vector_size(16), may_alias));
typedef float Floats8 __attribute__((vector_size(32), may_alias));
typedef int16_t Shorts8 __attribute__((vector_size(16), may_alias));
typedef int8_t Bytes8 __attribute__((vector_size(8), may_alias));
typedef int8_t WideBytes __attribute__((vector_size(2 * kVector), may_alias));

// Exponents go by bytes, below the largest one of A's row and of B: at least kClamped. The largest sum of two is right
// where it is above kClamped; a sum of kNothing or less has a zero in it.
constexpr int kClamped = -31, kNothing = -64;
constexpr unsigned kFraction = 23;  // places below fp32's fields of exponents

// A block's bytes lie row by row of each vector's first row, then of each one's second row, and so on: within 16 bytes
// there is a row of every vector, which is how far a byte can be moved at once.
constexpr unsigned byte_row(unsigned row) {
    return row % kVectorRows * kVectors + row / kVectorRows;
}

// The bytes of a vector, as numbers where fp32 has its exponents.
inline Ints as_fields(Bytes bytes, unsigned vector) {
#if defined(__AVX2__)
    struct Places {
        alignas(kBlock) int8_t of[kVectors][kBlock];
        constexpr Places() : of() {
            for (unsigned v = 0; v < kVectors; ++v)
                for (unsigned i = 0; i < kBlock; ++i)
                    of[v][i] = i % 4 == 3 ? int8_t(v * kQuad + i / 4 % kQuad) : int8_t(-1);
        }
    };
    static constexpr Places kHighest;  // a byte comes to the top of its number
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return as<Ints>(_mm512_shuffle_epi8(as<__m512i>(bytes), load<__m512i>(kHighest.of[vector]))) >> 1;
#else
    return as<Ints>(_mm256_shuffle_epi8(as<__m256i>(bytes), load<__m256i>(kHighest.of[vector]))) >> 1;
#endif
#else
    alignas(kBlock) int8_t all[kBlock];
    save(all, bytes);
    Ints fields;
    for (unsigned i = 0; i < kVector; ++i)
        fields[i] = all[(i / kQuad * kVectors + vector) * kQuad + i % kQuad] * (1 << kFraction);
    return fields;
#endif
}

// The same four numbers for each row of a vector.
inline Floats for_each_row(const float *four) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return as<Floats>(_mm512_maskz_broadcast_f32x4(0xffff, load<__m128>(four)));
#elif defined(__AVX2__)
    return as<Floats>(_mm256_broadcast_ps(reinterpret_cast<const __m128 *>(four)));
#else
    const Floats4 v = load<Floats4>(four);
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3);
#endif
}
// Four numbers of each row, rows being Step apart.
template <unsigned Step>
inline Floats fours(const float *from) {
    const auto two_rows = [from](unsigned row) {
        const Floats4 a = load<Floats4>(from + row * Step), b = load<Floats4>(from + (row + 1) * Step);
        return Floats8(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7));
    };
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return __builtin_shufflevector(two_rows(0), two_rows(2), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    return two_rows(0);
#endif
}
// Number I of each row, four times.
template <unsigned I>
inline Floats four_times(Floats v) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return __builtin_shufflevector(v, v, I, I, I, I, I + 4, I + 4, I + 4, I + 4, I + 8, I + 8, I + 8, I + 8, I + 12,
                                   I + 12, I + 12, I + 12);
#else
    return __builtin_shufflevector(v, v, I, I, I, I, I + 4, I + 4, I + 4, I + 4);
#endif
}

template <class Vector>
inline Vector larger(Vector a, Vector b) {
    return a > b ? a : b;
}
inline int16_t largest(Shorts8 v) {
    v = larger(v, Shorts8(__builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)));
    v = larger(v, Shorts8(__builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5)));
    return std::max(v[0], v[1]);
}
// Exponents below a base, as bytes have them.
template <class Vector>
inline Vector below(Vector exponents, int16_t base) {
    return exponents == kNoExponent ? Vector{} + int16_t(kNothing)
                                    : larger(exponents - base, Vector{} + int16_t(kClamped));
}

template <SumRule Rule, unsigned K>
class Sums {
  public:
    explicit Sums(const WgmmaSums &o) : o_(o) {
        bytes_of_b();
        bytes_of_a();
    }
    bool run() {
        if (special_) return false;
        for (unsigned row = 0; row < kAllRows; row += kBlockRows) {
            spread_a(row);
            for (unsigned column = 0; column < o_.d_columns; column += kQuad) {
                const Block block = block_of(row, column);
                unusual_ ? carefully(block) : usually(block);
            }
        }
        return true;
    }

  private:
    static constexpr int kUnits = kPlaces<Rule>;
    static constexpr int kLow = kLeast + 127, kHigh = kMost + 127;  // fp32's fields of exponents that vectors take
    static constexpr int kLowestBase = 2 * kNothing + 1;  // with two zeros below it still an exponent of 32 bits

    struct Block {
        unsigned row;  // the first one
        size_t b;      // where its columns of B begin
        std::byte *d[kVectors];
    };

    void bytes_of_b() {
        constexpr unsigned kAtOnce = 2 * kVector;
        const size_t count = size_t(K) * o_.columns;  // a multiple of 32
        const int16_t *const exponents = o_.b_exponents;
        WideShorts largest_ones = load<WideShorts>(exponents);
        for (size_t i = kAtOnce; i < count; i += kAtOnce)
            largest_ones = larger(largest_ones, load<WideShorts>(exponents + i));
        alignas(64) int16_t lanes[kAtOnce];
        save(lanes, largest_ones);
        const int16_t most = *std::max_element(lanes, lanes + kAtOnce);
        special_ = most == kSpecialExponent;
        base_of_b_ = most == kNoExponent ? int16_t(0) : most;
        for (size_t i = 0; i < count; i += kAtOnce)
            save(b_bytes_ + i, __builtin_convertvector(below(load<WideShorts>(exponents + i), base_of_b_), WideBytes));
    }

    void bytes_of_a() {
        for (unsigned row = 0; row < kAllRows; ++row) {
            const int16_t *const exponents = o_.a_exponents + row * K;
            Shorts8 largest_ones = load<Shorts8>(exponents);
            for (unsigned k = 8; k < K; k += 8) largest_ones = larger(largest_ones, load<Shorts8>(exponents + k));
            const int16_t most = largest(largest_ones), base = most == kNoExponent ? int16_t(0) : most;
            special_ = special_ || most == kSpecialExponent;
            row_base_[row] = base + base_of_b_ + 127;
            for (unsigned k = 0; k < K; k += 8)
                save(a_bytes_[row] + k, __builtin_convertvector(below(load<Shorts8>(exponents + k), base), Bytes8));
        }
    }

    static int least_of(int base) { return std::max(base + kClamped + 1, kLow); }

    // A's rows of the blocks from this row on, each number for four columns.
    void spread_a(unsigned first) {
        unusual_ = false;
        for (unsigned row = 0; row < kBlockRows; ++row) {
            const int base = row_base_[first + row];
            const bool fits = base <= kHigh && base >= kLowestBase;
            unusual_ = unusual_ || !fits;
            const int field = fits ? base * (1 << kFraction) : 0, least = fits ? least_of(base) << kFraction : 0;
            const unsigned at = row % kVectorRows * kQuad;
            for (unsigned i = at; i < at + kQuad; ++i) {
                base_[row / kVectorRows][i] = base;
                base_field_[row / kVectorRows][i] = field;
                least_field_[row / kVectorRows][i] = least;
            }
        }
        for (unsigned k = 0; k < K; k += 4) {
            spread_bytes(first, k);
            for (unsigned v = 0; v < kVectors; ++v) {
                const Floats rows = fours<K>(o_.a + (first + v * kVectorRows) * K + k);
                save(a_[k][v], four_times<0>(rows));
                save(a_[k + 1][v], four_times<1>(rows));
                save(a_[k + 2][v], four_times<2>(rows));
                save(a_[k + 3][v], four_times<3>(rows));
            }
        }
    }
    void spread_bytes(unsigned first, unsigned k) {
        alignas(kBlock) uint32_t rows[kBlockRows];  // four bytes of each
        for (unsigned row = 0; row < kBlockRows; ++row) rows[byte_row(row)] = load<uint32_t>(a_bytes_[first + row] + k);
        for (unsigned i = 0; i < 4; ++i) save(a_exponents_[k + i], (load<Quads>(rows) >> 8 * i & 0xff) * 0x01010101u);
    }

    Block block_of(unsigned row, unsigned column) {
        Block block{row, (column / kSumColumns * K) * kSumColumns + column % kSumColumns, {}};
        const uint32_t *const slots = o_.slots + column / 8 * 4 + column / kQuad % 2;
        for (unsigned v = 0; v < kVectors; ++v) {
            const unsigned mine = row + v * kVectorRows;
            block.d[v] =
                o_.registers[mine / 16] + slots[mine / kRegisterRows % 2 * 2] + mine % kRegisterRows * sizeof(Floats4);
        }
        return block;
    }
    Floats addend(const Block &block, unsigned v) const { return o_.adds ? load<Floats>(block.d[v]) : Floats{}; }

    // The largest exponents of a block's products, below their rows' bases.
    Bytes find_exponents(const Block &block) const {
        const int8_t *b = b_bytes_ + block.b;
        Bytes most = Bytes{} + int8_t(2 * kNothing);
#pragma GCC unroll 32
        for (unsigned k = 0; k < K; ++k, b += kSumColumns)
            most = larger(most, load<Bytes>(a_exponents_[k]) + as<Bytes>(Quads{} + load<uint32_t>(b)));
        return most;
    }

    // All that is usual. A sum that may not fit, an exponent that is not known, or too small, is left to carefully();
    // so are rows whose products may be too large. Of an infinite or NaN d the addend has its top bit set.
    void usually(const Block &block) {
        const Bytes exponents = find_exponents(block);
        // Exponents are those of fp32, where they lie in its numbers.
        Ints exponent[kVectors];
        Floats scale[kVectors], result[kVectors];
        Words sum[kVectors];
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) {
            const Floats d = addend(block, v);
            exponent[v] = larger(as_fields(exponents, v) + base_field_[v], as<Ints>(d) & (0xff << kFraction));
            scale[v] = as<Floats>((unsigned(254 + kUnits) << kFraction) - as<Words>(exponent[v]));
            sum[v] = cut(d, scale[v]);
        }
        const float *b = o_.b + block.b;
#pragma GCC unroll 32
        for (unsigned k = 0; k < K; ++k, b += kSumColumns) {
            const Floats columns = for_each_row(b);
#pragma GCC unroll 4
            for (unsigned v = 0; v < kVectors; ++v) sum[v] += cut(load<Floats>(a_[k][v]) * columns, scale[v]);
        }
        Ints bits = {}, too_low = {};  // bits of all magnitudes: two on top remain free if nothing has overflowed
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) {
            bits |= magnitude_of(sum[v]);
            too_low |= exponent[v] - least_field_[v];
            result[v] = as_float<Rule>(sum[v]) * as<Floats>(exponent[v] - (kUnits << kFraction));
        }
        if (any_negative(too_low | bits | bits << 1)) [[unlikely]]
            return carefully(block);
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) save(block.d[v], result[v]);
    }

    [[gnu::noinline]] void carefully(const Block &block) {
        const Bytes exponents = find_exponents(block);
        for (unsigned v = 0; v < kVectors; ++v) {
            const Floats d = addend(block, v);
            const Ints below = as_fields(exponents, v) >> kFraction, of_products = below + base_[v], of_d = field_of(d);
            Ints field = larger(of_products, of_d);
            const Ints least = larger(base_[v] + (kClamped + 1), ints(kLow));
            Ints bad = (field < least) | (field > kHigh);
            if (any(bad)) settle(d, below <= kNothing, field, bad);
            const Floats scale = power(kUnits + 127 - field);
            Words products = {};
            for (unsigned k = 0; k < K; ++k)
                products += cut(load<Floats>(a_[k][v]) * for_each_row(o_.b + block.b + k * kSumColumns), scale);
            Floats result = finish<Rule>(products, d, scale, field - 127, bad);
            if (any(bad)) exactly(block, v, d, bad, result);
            save(block.d[v], result);
        }
    }

    static Ints field_of(Floats d) { return as<Ints>(as<Words>(d) << 1 >> 24); }  // of 0 and of subnormal numbers 0

    // Elements whose E is not what it seems, or none for vectors. odd: on return those of them that are not.
    static void settle(Floats d, Ints nothing, Ints &field, Ints &odd) {
        const Ints of_d = field_of(d);
        field = nothing ? of_d : field;
        const Ints zero = as<Ints>(as<Words>(d) << 1) == 0;
        odd &= ~(nothing & (zero | ((field >= kLow) & (field <= kHigh))));
        field = field > kLow ? field : ints(kLow);
        field = field < kHigh ? field : ints(kHigh);
    }

    // Elements that are not for vectors.
    void exactly(const Block &block, unsigned v, Floats d, Ints bad, Floats &result) const {
        for (unsigned i = 0; i < kVector; ++i) {
            if (!bad[i]) continue;
            const float addend = d[i];
            const size_t a = (block.row + v * kVectorRows + i / kQuad) * K, b = block.b + i % kQuad;
            result[i] = exact_sum(o_.a + a, o_.a_exponents + a, o_.b + b, o_.b_exponents + b, kSumColumns, K,
                                  o_.adds ? &addend : nullptr, Rule);
        }
    }

    const WgmmaSums o_;
    int16_t base_of_b_ = 0;
    bool special_ = false;        // an infinity or NaN is among the factors
    int32_t row_base_[kAllRows];  // fp32's field of the largest exponent of the row's products, at most
    alignas(16) int8_t a_bytes_[kAllRows][K];
    alignas(64) int8_t b_bytes_[K * kMostColumns];
    // Of the rows of a block.
    bool unusual_ = false;  // a base that is not for vectors
    Ints base_[kVectors], base_field_[kVectors], least_field_[kVectors];
    alignas(64) float a_[K][kVectors][kVector];
    alignas(64) int8_t a_exponents_[K][kBlock];
};

}  // namespace

bool wgmma_sums(const WgmmaSums &o) {
    switch (o.depth) {
        case 8:
            return Sums<SumRule{}, 8>(o).run();
        case 16:
            return Sums<SumRule{}, 16>(o).run();
        default:
            return Sums<SumRule{.narrow = true}, 32>(o).run();
    }
}

}  // namespace warpsim
