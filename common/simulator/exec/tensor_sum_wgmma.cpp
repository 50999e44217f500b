#include "exec/tensor_sum_wgmma.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/tensor_sum.h"
#include "exec/tensor_sum_vector.h"

namespace warpsim {
namespace {

using namespace tensor;

typedef int8_t Bytes __attribute__((vector_size(4 * kVector), may_alias));
typedef float Floats4 __attribute__((vector_size(16), may_alias));

constexpr unsigned kAllRows = 64, kRows = kVector / 4;  // those of a vector
constexpr unsigned kMostColumns = 256;

// Exponents go by bytes, below the largest one of A's row and of B: at least kClamped. The largest sum of two is right
// where it is above kClamped; a sum of kNothing or less has a zero in it. A lane of 32 bits has those of four groups of
// 4 columns, the first in its low byte.
constexpr int kClamped = -31, kNothing = -64;

#if defined(__AVX512BW__) && defined(__AVX512VL__)
constexpr Ints kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
constexpr Ints kLane = {0, 1, 2, 3, 4, 5, 6, 7};
#endif
// Four floats, again and again.
inline Floats repeat(const float *four) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return as<Floats>(_mm512_maskz_broadcast_f32x4(0xffff, _mm_load_ps(four)));
#else
    const Floats4 v = load<Floats4>(four);
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3);
#endif
}

template <unsigned K>
class Sums {
  public:
    explicit Sums(const WgmmaSums &o) : o_(o) {
        find_base();
        spread_exponents_of_a();
        spread_exponents_of_b();
    }
    bool run() {
        if (special_) return false;
        for (unsigned row = 0; row < kAllRows; row += kRows) rows(row);
        return true;
    }

  private:
    static constexpr SumRule kRule{};
    static constexpr int kUnits = kPlaces<kRule>;
    static constexpr unsigned kGroups = kMostColumns / 4;
    static constexpr unsigned kBlock = 16;  // columns whose exponents share a vector

    void find_base() {
        WideShorts most = WideShorts{} + kNoExponent;
        for (size_t i = 0; i < size_t(K) * o_.columns; i += 2 * kVector) {
            const WideShorts e = load<WideShorts>(o_.b_exponents + i);
            most = e > most ? e : most;
        }
        int16_t all = kNoExponent;
        for (unsigned i = 0; i < 2 * kVector; ++i) all = std::max(all, most[i]);
        base_of_b_ = all == kNoExponent ? int16_t(0) : all;
        special_ = all == kSpecialExponent;
    }

    static bool any_of(Shorts lanes) { return any(__builtin_convertvector(lanes, Ints)); }
    static Shorts below_base(Shorts exponents, Shorts base) {
        const Shorts below = exponents - base, least = Shorts{} + int16_t(kClamped);
        return exponents == kNoExponent ? Shorts{} + int16_t(kNothing) : below > least ? below : least;
    }

    void spread_exponents_of_a() {
        for (unsigned row = 0; row < kAllRows; row += kVector) {
            Shorts most = Shorts{} + kNoExponent;
            for (unsigned k = 0; k < K; ++k) {
                const Shorts e = load<Shorts>(o_.a_exponents + k * kAllRows + row);
                most = e > most ? e : most;
            }
            special_ = special_ || any_of(most == kSpecialExponent);
            most = most == kNoExponent ? Shorts{} : most;
            save(base_ + row, __builtin_convertvector(most, Ints) + base_of_b_);
            for (unsigned k = 0; k < K; ++k) {
                const Shorts e = below_base(load<Shorts>(o_.a_exponents + k * kAllRows + row), most);
                const Ints byte = __builtin_convertvector(e, Ints) & 0xff, twice = byte | byte << 8;
                save(a_exponents_[k] + row, twice | twice << 16);
            }
        }
    }

    void spread_exponents_of_b() {
        for (unsigned k = 0; k < K; ++k) {
            for (unsigned block = 0; block < o_.columns / kBlock; ++block) {
                Ints bytes = {};
                for (unsigned part = 0; part < kBlock / kVector; ++part) {
                    const size_t column = block * kBlock + part * kVector;
                    const Shorts e = load<Shorts>(o_.b_exponents + k * o_.columns + column);
                    bytes |= (__builtin_convertvector(below_base(e, Shorts{} + base_of_b_), Ints) & 0xff)
                             << ((kLane + int(part * kVector)) >> 2 << 3);
                }
                if constexpr (kVector == 16) bytes |= __builtin_shuffle(bytes, kLane ^ 8);
                bytes |= __builtin_shuffle(bytes, kLane ^ 4);
                save(b_exponents_[block][k], bytes);
            }
        }
    }

    // kRows rows of D, step by step for all columns: within a vector, most steps wait for the one before.
    void rows(unsigned row) {
        const unsigned chunk = row / kVector * kVector;
        const Ints lanes = (kLane >> 2) + int(row % kVector);
        const unsigned groups = o_.d_columns / 4;
        std::byte *const registers = o_.registers[row / 16] + row % 8 * 16;
        const uint32_t *const slots = o_.slots + row / 8 % 2 * 2;
        const auto place = [=](unsigned group) { return registers + slots[group / 2 * 4 + group % 2]; };
        Ints exponents[kMostColumns / kBlock], fields[kGroups], odd[kGroups], any_odd = {};
        find_exponents(chunk, lanes, exponents);
        // From here on exponents are fp32's fields; `least`: none below it is known. Factors may be so large that
        // it is above all that vectors take; `known` is how many are left.
        const Ints base = __builtin_shuffle(load<Ints>(base_ + chunk), lanes) + 127;
        const Ints right = base + (kClamped + 1), least = right > kLeast + 127 ? right : ints(kLeast + 127);
        const Ints room = ints(kMost + 128) - least;
        const Words known = as<Words>(room > 0 ? room : Ints{});
        const bool adds = o_.adds;
        for (unsigned group = 0; group < groups; ++group) {
            const Floats d = adds ? load<Floats>(place(group)) : Floats{};
            const Ints of_products = of_group(exponents, group) + base;
            const Ints of_d = as<Ints>(as<Words>(d) << 1 >> 24);  // of 0 and of subnormal numbers 0
            fields[group] = of_products > of_d ? of_products : of_d;
            odd[group] = as<Words>(fields[group] - least) >= known;
            any_odd |= odd[group];
        }
        if (any(any_odd)) [[unlikely]] {
            for (unsigned group = 0; group < groups; ++group) {
                const Floats d = adds ? load<Floats>(place(group)) : Floats{};
                const Ints nothing = of_group(exponents, group) <= kNothing;
                settle(d, nothing, fields[group], odd[group]);
            }
        }
        Words products[kGroups];
        add_products(chunk, lanes, fields, products);
        for (unsigned group = 0; group < groups; ++group) {
            const Ints field = fields[group];
            const Floats d = adds ? load<Floats>(place(group)) : Floats{};
            Ints bad = odd[group];
            const Floats result = finish<kRule>(products[group], d, scale_of(field), field - 127, bad);
            if (any(bad)) [[unlikely]]
                exactly(row, group * 4, d, result, bad, place(group));
            else
                save(place(group), result);
        }
    }

    static Floats scale_of(Ints field) { return as<Floats>((254 + kUnits - field) << 23); }
    static Ints of_group(const Ints *exponents, unsigned group) {
        return exponents[group / 4] << int(24 - group % 4 * 8) >> 24;
    }

    // Elements whose E is not what it seems, or none for vectors. odd: on return those of them that are not.
    static void settle(Floats d, Ints nothing, Ints &field, Ints &odd) {
        constexpr int kLow = kLeast + 127, kHigh = kMost + 127;
        const Ints of_d = as<Ints>(as<Words>(d) << 1 >> 24);
        field = nothing ? of_d : field;
        const Ints zero = as<Ints>(as<Words>(d) << 1) == 0;
        odd &= ~(nothing & (zero | ((field >= kLow) & (field <= kHigh))));
        field = field > kLow ? field : ints(kLow);
        field = field < kHigh ? field : ints(kHigh);
    }

    void add_products(unsigned chunk, Ints lanes, const Ints *fields, Words *sums) const {
        Floats a[K];
        for (unsigned k = 0; k < K; ++k) a[k] = __builtin_shuffle(load<Floats>(o_.a + k * kAllRows + chunk), lanes);
        const size_t step = o_.columns;
        const float *b_of_group = o_.b;
        for (unsigned group = 0; group < o_.d_columns / 4; ++group, b_of_group += 4) {
            const Floats scale = scale_of(fields[group]);
            const float *b = b_of_group;
            Words sum[2] = {};  // a vector's additions wait for each other
#pragma GCC unroll 32
            for (unsigned k = 0; k < K; ++k, b += step) sum[k % 2] += cut(a[k] * repeat(b), scale);
            sums[group] = sum[0] + sum[1];
        }
    }

    // The largest exponents of the products, in D's order, below `base`.
    void find_exponents(unsigned chunk, Ints lanes, Ints *to) const {
        Bytes a[K];
        for (unsigned k = 0; k < K; ++k)
            a[k] = as<Bytes>(__builtin_shuffle(load<Ints>(a_exponents_[k] + chunk), lanes));
        for (unsigned block = 0; block < o_.columns / kBlock; ++block) {
            Bytes most = a[0] + load<Bytes>(b_exponents_[block][0]);
#pragma GCC unroll 32
            for (unsigned k = 1; k < K; ++k) {
                const Bytes both = a[k] + load<Bytes>(b_exponents_[block][k]);
                most = both > most ? both : most;
            }
            to[block] = as<Ints>(most);
        }
    }

    // Elements that are not for vectors.
    [[gnu::noinline]] void exactly(unsigned row, unsigned column, Floats d, Floats result, Ints bad,
                                   std::byte *place) const {
        for (unsigned i = 0; i < kVector; ++i) {
            if (!bad[i]) continue;
            float a[K], b[K];
            int16_t a_exponents[K], b_exponents[K];
            for (unsigned k = 0; k < K; ++k) {
                const size_t at = k * kAllRows + row + i / 4, of_b = size_t(k) * o_.columns + column + i % 4;
                a[k] = o_.a[at], a_exponents[k] = o_.a_exponents[at];
                b[k] = o_.b[of_b], b_exponents[k] = o_.b_exponents[of_b];
            }
            const float addend = d[i];
            result[i] = exact_sum(a, a_exponents, b, b_exponents, 1, K, o_.adds ? &addend : nullptr, kRule);
        }
        save(place, result);
    }

    const WgmmaSums &o_;
    int16_t base_of_b_ = 0;
    bool special_ = false;                          // an infinity or NaN is among the factors
    alignas(64) int32_t base_[kAllRows];            // the largest exponent of the row's products, at most
    alignas(64) int32_t a_exponents_[K][kAllRows];  // each four times
    alignas(64) int32_t b_exponents_[kMostColumns / kBlock][K][kVector];
};

}  // namespace

bool wgmma_sums(const WgmmaSums &o) {
    return o.depth == 8 ? Sums<8>(o).run() : Sums<16>(o).run();
}

}  // namespace warpsim
