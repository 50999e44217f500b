#include "instructions/wgmma/wgmma.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "instructions/mma/tensor_sum.h"
#include "instructions/mma/tensor_sum_vector.h"

namespace warpsim {
namespace {

using namespace tensor;

constexpr unsigned kAllRows = 64, kMostColumns = 256;
constexpr unsigned kBlock = kSumColumns, kVectors = kBlock / kVector;  // columns of a row that are summed at a time
constexpr unsigned kPiece = 4;                                         // columns of a row side by side in a register

typedef int8_t Bytes __attribute__((vector_size(kBlock), may_alias));
typedef int32_t Quads __attribute__((vector_size(kBlock), may_alias));  // of four bytes
typedef int8_t VectorBytes __attribute__((vector_size(kVector), may_alias));
typedef float Floats4 __attribute__((vector_size(16), may_alias));
typedef float Floats8 __attribute__((vector_size(32), may_alias));
typedef uint32_t Words8 __attribute__((vector_size(32), may_alias));
typedef int16_t Shorts8 __attribute__((vector_size(16), may_alias));
typedef int16_t Shorts16 __attribute__((vector_size(32), may_alias));
typedef int8_t Bytes16 __attribute__((vector_size(16), may_alias));

// Exponents go by bytes, below the largest one of A's row and of B: at least kClamped. The largest sum of two is right
// where it is above kClamped; a sum of kNothing or less has a zero in it.
constexpr int kClamped = -31, kNothing = -64;

inline Bytes four_times(int32_t bytes) {
    return as<Bytes>(Quads{} + bytes);
}
inline Ints widen(const int8_t *bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return as<Ints>(_mm512_maskz_cvtepi8_epi32(0xffff, load<__m128i>(bytes)));
#elif defined(__AVX2__)
    return as<Ints>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(bytes))));
#else
    return __builtin_convertvector(load<VectorBytes>(bytes), Ints);
#endif
}

inline Floats8 join(Floats4 a, Floats4 b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}
// Where the pieces of a block of D lie, in the first of 8 rows; they are read elsewhere if D does not count.
struct Pieces {
    const std::byte *from[kBlock / kPiece];
    std::byte *to[kBlock / kPiece];
};
// A vector of D, so many bytes behind its place.
inline Floats load_pieces(const Pieces &d, unsigned vector, size_t offset) {
    const std::byte *const *from = d.from + vector * (kVector / kPiece);
    const auto piece = [=](unsigned i) { return load<Floats4>(from[i] + offset); };
    const Floats8 low = join(piece(0), piece(1));
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return __builtin_shufflevector(low, join(piece(2), piece(3)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    return low;
#endif
}
inline void save_pieces(const Pieces &d, unsigned vector, size_t offset, Floats v) {
    std::byte *const *to = d.to + vector * (kVector / kPiece);
    save(to[0] + offset, Floats4(__builtin_shufflevector(v, v, 0, 1, 2, 3)));
#if defined(__AVX2__) && !(defined(__AVX512BW__) && defined(__AVX512VL__))
    save(to[1] + offset, _mm256_extractf128_ps(as<__m256>(v), 1));
#else
    save(to[1] + offset, Floats4(__builtin_shufflevector(v, v, 4, 5, 6, 7)));
#endif
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    save(to[2] + offset, Floats4(__builtin_shufflevector(v, v, 8, 9, 10, 11)));
    save(to[3] + offset, Floats4(__builtin_shufflevector(v, v, 12, 13, 14, 15)));
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
        spread_exponents_of_b();
        spread_exponents_of_a();
    }
    bool run() {
        if (special_) return false;
        Pieces pieces = pieces_of(0, 0), next;
        for (unsigned row = 0, column = 0; row < kAllRows; pieces = next) {
            const unsigned first = row, block = column;
            column += kBlock;
            if (column == o_.columns) column = 0, row += kRows;
            if (row < kAllRows) next = pieces_of(row, column);
            for (unsigned i = 0; i < kRows; ++i) sums_of_block(first + i, block, pieces);
        }
        return true;
    }

  private:
    static constexpr int kUnits = kPlaces<Rule>;
    static constexpr unsigned kRows = 8;                            // of a register
    static constexpr int kLow = kLeast + 127, kHigh = kMost + 127;  // fp32's fields of exponents that vectors take
    static constexpr unsigned kFraction = 23;

    void spread_exponents_of_b() {
        const size_t count = size_t(K) * o_.columns;
        const int16_t *const exponents = o_.b_exponents;
        Shorts8 largest_ones = load<Shorts8>(exponents);
        for (size_t i = 8; i < count; i += 8) largest_ones = larger(largest_ones, load<Shorts8>(exponents + i));
        const int16_t most = largest(largest_ones);
        special_ = most == kSpecialExponent;
        base_of_b_ = most == kNoExponent ? int16_t(0) : most;
        for (size_t i = 0; i < count; i += 16)
            save(b_exponents_ + i, __builtin_convertvector(below(load<Shorts16>(exponents + i), base_of_b_), Bytes16));
        // Columns that D does not have count as if they had products, so that nothing is unusual there.
        if (const unsigned there = o_.d_columns % kBlock)
            for (unsigned k = 0; k < K; ++k)
                std::fill_n(b_exponents_ + o_.d_columns / kBlock * K * kBlock + k * kBlock + there, kBlock - there,
                            int8_t(0));
    }

    void spread_exponents_of_a() {
        for (unsigned row = 0; row < kAllRows; ++row) {
            const int16_t *const exponents = o_.a_exponents + row * K;
            Shorts8 largest_ones = load<Shorts8>(exponents);
            for (unsigned k = 8; k < K; k += 8) largest_ones = larger(largest_ones, load<Shorts8>(exponents + k));
            const int16_t most = largest(largest_ones), base = most == kNoExponent ? int16_t(0) : most;
            special_ = special_ || most == kSpecialExponent;
            base_[row] = base + base_of_b_ + 127;
            for (unsigned k = 0; k < K; k += 8) {
                const Words8 bytes = __builtin_convertvector(below(load<Shorts8>(exponents + k), base), Words8) & 0xff;
                save(a_exponents_[row] + k, bytes * 0x01010101u);
            }
        }
    }

    // Those of 8 rows from this one on; what D does not have lies in nobody's.
    Pieces pieces_of(unsigned row, unsigned column) {
        const uint32_t *slots = o_.slots + row / 8 % 2 * 2;
        Pieces found;
        for (unsigned i = 0; i < kBlock / kPiece; ++i) {
            const unsigned piece = column / kPiece + i;
            const bool in_d = piece * kPiece < o_.d_columns;
            found.to[i] = in_d ? o_.registers[row / 16] + slots[piece / 2 * 4 + piece % 2] : nobodys_;
            found.from[i] = o_.adds ? found.to[i] : nothing_;
            __builtin_prefetch(found.from[i]);
            __builtin_prefetch(found.from[i] + 64);
        }
        return found;
    }

    // The largest exponents of the products of a block, below the row's base.
    void find_exponents(unsigned row, unsigned column, int8_t (&to)[kBlock]) const {
        const int32_t *const a = a_exponents_[row];
        const int8_t *const b = b_exponents_ + column * K;
        Bytes most = four_times(a[0]) + load<Bytes>(b);
#pragma GCC unroll 32
        for (unsigned k = 1; k < K; ++k) most = larger(most, four_times(a[k]) + load<Bytes>(b + k * kBlock));
        save(to, most);
        // Each is widened from where it lies; the compiler must not take them out of the vector one by one instead.
        asm("" : "+m"(to));
    }

    // The products of `Vectors` vectors of a row, cut and added to the sums.
    template <unsigned Vectors>
    static void add_products(const float *a, const float *b, const Floats *scale, Words *sum) {
#pragma GCC unroll 4
        for (unsigned k = 0; k < K; ++k, b += kBlock) {
            const Floats mine = a[k] - Floats{};
#pragma GCC unroll 4
            for (unsigned v = 0; v < Vectors; ++v) sum[v] += cut(mine * load<Floats>(b + v * kVector), scale[v]);
        }
    }

    static constexpr int kLowestBase = 2 * kNothing + 1;  // with two zeros below it still an exponent of 32 bits

    static int least_of(int base) { return std::max(base + kClamped + 1, kLow); }

    // All that is usual. A sum that may not fit, an exponent that is not known, or too small, is left to carefully();
    // so is a row whose products may be too large. Of an infinite or NaN d the addend has its top bit set.
    void sums_of_block(unsigned row, unsigned column, const Pieces &pieces) {
        if (base_[row] > kHigh || base_[row] < kLowestBase) [[unlikely]]
            return carefully(row, column, pieces);
        alignas(kBlock) int8_t exponents[kBlock];
        find_exponents(row, column, exponents);
        const size_t offset = row % kRows * sizeof(Floats4);
        const Ints base = ints(int(unsigned(base_[row]) << kFraction));
        // Exponents are those of fp32, where they lie in its numbers.
        Ints exponent[kVectors], lowest = ints(INT32_MAX);
        Floats scale[kVectors], result[kVectors];
        Words sum[kVectors];
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) {
            const Floats d = load_pieces(pieces, v, offset);
            const Ints of_products = (widen(exponents + v * kVector) << kFraction) + base;
            const Ints of_d = as<Ints>(d) & (0xff << kFraction);
            exponent[v] = of_products > of_d ? of_products : of_d;
            lowest = exponent[v] < lowest ? exponent[v] : lowest;
            scale[v] = as<Floats>((unsigned(254 + kUnits) << kFraction) - as<Words>(exponent[v]));
            sum[v] = cut(d, scale[v]);
        }
        add_products<kVectors>(o_.a + row * K, o_.b + column * K, scale, sum);
        Ints bits = {};  // of all magnitudes: two on top remain free if nothing has overflowed
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) {
            bits |= magnitude_of(sum[v]);
            result[v] = as_float<Rule>(sum[v]) * as<Floats>(exponent[v] - (kUnits << kFraction));
        }
        if (any_negative((lowest - (least_of(base_[row]) << kFraction)) | bits | bits << 1)) [[unlikely]]
            return carefully(row, column, pieces);
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) save_pieces(pieces, v, offset, result[v]);
    }

    [[gnu::noinline]] void carefully(unsigned row, unsigned first, const Pieces &pieces) {
        alignas(kBlock) int8_t exponents[kBlock];
        find_exponents(row, first, exponents);
        const size_t offset = row % kRows * sizeof(Floats4);
        const int base = base_[row], least = least_of(base);
        for (unsigned v = 0; v < kVectors; ++v) {
            const Floats d = load_pieces(pieces, v, offset);
            const Ints below = widen(exponents + v * kVector), of_products = below + base, of_d = field_of(d);
            Ints field = of_products > of_d ? of_products : of_d;
            Ints bad = (field < least) | (field > kHigh);
            if (any(bad)) settle(d, below <= kNothing, field, bad);
            const Floats scale = power(kUnits + 127 - field);
            Words products = {};
            add_products<1>(o_.a + row * K, o_.b + first * K + v * kVector, &scale, &products);
            Floats result = finish<Rule>(products, d, scale, field - 127, bad);
            if (any(bad)) exactly(row, first * K + v * kVector, d, bad, result);
            save_pieces(pieces, v, offset, result);
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
    void exactly(unsigned row, size_t b, Floats d, Ints bad, Floats &result) const {
        for (unsigned i = 0; i < kVector; ++i) {
            if (!bad[i]) continue;
            const float addend = d[i];
            result[i] = exact_sum(o_.a + row * K, o_.a_exponents + row * K, o_.b + b + i, o_.b_exponents + b + i,
                                  kBlock, K, o_.adds ? &addend : nullptr, Rule);
        }
    }

    const WgmmaSums o_;
    int16_t base_of_b_ = 0;
    bool special_ = false;    // an infinity or NaN is among the factors
    int32_t base_[kAllRows];  // fp32's field of the largest exponent of the row's products, at most
    alignas(64) int32_t a_exponents_[kAllRows][K];  // each four times
    alignas(64) int8_t b_exponents_[K * kMostColumns];
    std::byte nobodys_[kRows * sizeof(Floats4)] = {};
    const std::byte nothing_[kRows * sizeof(Floats4)] = {};
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
