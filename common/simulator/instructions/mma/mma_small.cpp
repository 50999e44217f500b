// mma.sync of 8 rows, and of single bits. m8n8k4 of f16 is Volta's: four products at once, one of each quad pair (lanes
// 4p to 4p + 3 and 16 + 4p to 16 + 4p + 3). The others lie as instructions/mma/mma.h says, A with one register for its
// 8 rows.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/program.h"
#include "core/warp.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/mma/mma.h"

namespace warpsim {

namespace {

int32_t add(int32_t sum, int32_t c, bool saturate) {
    if (saturate) return static_cast<int32_t>(std::clamp<int64_t>(int64_t{sum} + c, INT32_MIN, INT32_MAX));
    return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(c));
}

// What 32 bits of A and 32 bits of B add to a sum.
struct Xor {
    static int32_t dot(uint32_t a, uint32_t b) { return std::popcount(a ^ b); }
};
struct And {
    static int32_t dot(uint32_t a, uint32_t b) { return std::popcount(a & b); }
};
template <unsigned Bits, bool SignedA, bool SignedB>
struct Integers {
    static int32_t element(uint32_t word, unsigned i, bool is_signed) {
        const uint32_t top = word << (32 - Bits * (i + 1));
        return is_signed ? static_cast<int32_t>(top) >> (32 - Bits) : static_cast<int32_t>(top >> (32 - Bits));
    }
    static int32_t dot(uint32_t a, uint32_t b) {
        int32_t sum = 0;
        for (unsigned i = 0; i < 32 / Bits; ++i) sum += element(a, i, SignedA) * element(b, i, SignedB);
        return sum;
    }
};

// Rows: 8 or 16; Words: those of a row of A, in steps of 4 lanes.
template <class Dot, unsigned Rows, unsigned Words>
void exec_words(Warp &w, const Op &op) {
    constexpr unsigned kHalves = Rows / 8, kB = Words / 4, kA = kHalves * kB, kD = 2 * kHalves;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const uint32_t *a = slots + kD, *b = a + kA, *c = b + kB;
    int32_t sums[kD][kLanes];
    for (unsigned i = 0; i < kD; ++i) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned group = lane / 4, column = 2 * (lane % 4) + i % 2;
            int32_t sum = 0;
            for (unsigned k = 0; k < Words; ++k)
                sum += Dot::dot(w.lanes<uint32_t>(a[i / 2 + kHalves * (k / 4)])[4 * group + k % 4],
                                w.lanes<uint32_t>(b[k / 4])[4 * column + k % 4]);
            sums[i][lane] = add(sum, w.lanes<int32_t>(c[i])[lane], op.extra & kMmaSaturate);
        }
    }
    for (unsigned i = 0; i < kD; ++i) write_lanes<int32_t>(w, slots[i], [&](unsigned lane) { return sums[i][lane]; });
}

// ---- m8n8k4 of f16 ----

struct Place {
    unsigned row, column;
};
// Of element i of a lane, four of A and of B, eight of C and D; 0 <= row, column.
Place place_a(unsigned lane, unsigned i, bool by_row) {
    const unsigned upper = lane < 16 ? 0 : 4;
    return by_row ? Place{lane % 4 + upper, i} : Place{i + upper, lane % 4};
}
Place place_b(unsigned lane, unsigned i, bool by_row) {
    const unsigned upper = lane < 16 ? 0 : 4;
    return by_row ? Place{lane % 4, i + upper} : Place{i, lane % 4 + upper};
}
Place place_c(unsigned lane, unsigned i, bool wide) {
    const unsigned upper = lane < 16 ? 0 : 4;
    if (!wide) return {lane % 4 + upper, i};
    return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
}

// Element i of a fragment, two in each register.
float half_at(const Warp &w, const uint32_t *slots, unsigned lane, unsigned i) {
    return f16_to_float(static_cast<uint16_t>(w.lanes<uint32_t>(slots[i / 2])[lane] >> (i % 2 * 16)));
}

template <bool RowA, bool RowB, bool WideD, bool WideC>
void exec_quad_pairs(Warp &w, const Op &op) {
    constexpr unsigned kD = WideD ? 8 : 4;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const uint32_t *a_slots = slots + kD, *b_slots = a_slots + 2, *c_slots = b_slots + 2;
    uint32_t results[kD][kLanes] = {};
    for (unsigned pair = 0; pair < 4; ++pair) {
        float a[8][4], b[4][8], c[8][8];
        const auto for_each_lane = [&](auto f) {
            for (unsigned i = 0; i < 8; ++i) f(i % 4 + 4 * pair + (i < 4 ? 0 : 16));
        };
        for_each_lane([&](unsigned lane) {
            for (unsigned i = 0; i < 4; ++i) {
                const Place pa = place_a(lane, i, RowA), pb = place_b(lane, i, RowB);
                a[pa.row][pa.column] = half_at(w, a_slots, lane, i);
                b[pb.row][pb.column] = half_at(w, b_slots, lane, i);
            }
            for (unsigned i = 0; i < 8; ++i) {
                const Place pc = place_c(lane, i, WideC);
                c[pc.row][pc.column] = WideC ? w.lanes<float>(c_slots[i])[lane] : half_at(w, c_slots, lane, i);
            }
        });
        for_each_lane([&](unsigned lane) {
            for (unsigned i = 0; i < 8; ++i) {
                const Place pd = place_c(lane, i, WideD);
                float sum = 0;
                for (unsigned k = 0; k < 4; ++k) sum += a[pd.row][k] * b[k][pd.column];
                const float value = canonical(c[pd.row][pd.column] + sum);
                if (WideD)
                    results[i][lane] = std::bit_cast<uint32_t>(value);
                else
                    results[i / 2][lane] |= uint32_t{float_to_f16(value)} << (i % 2 * 16);
            }
        });
    }
    for (unsigned i = 0; i < kD; ++i)
        write_lanes<uint32_t>(w, slots[i], [&](unsigned lane) { return results[i][lane]; });
}

#define INTEGERS(K, BITS, S, U)                                                                                 \
    {"m8n8k" #K ".row.col.s32." S "." S ".s32", exec_words<Integers<BITS, true, true>, 8, 4>, 2, 1, 1, 2},      \
        {"m8n8k" #K ".row.col.s32." S "." U ".s32", exec_words<Integers<BITS, true, false>, 8, 4>, 2, 1, 1, 2}, \
        {"m8n8k" #K ".row.col.s32." U "." S ".s32", exec_words<Integers<BITS, false, true>, 8, 4>, 2, 1, 1, 2}, \
        {"m8n8k" #K ".row.col.s32." U "." U ".s32", exec_words<Integers<BITS, false, false>, 8, 4>, 2, 1, 1, 2}
#define BITS_OF(SHAPE, ROWS, WORDS, ...)                                                    \
    {SHAPE ".row.col.s32.b1.b1.s32.xor.popc", exec_words<Xor, ROWS, WORDS>, __VA_ARGS__}, { \
        SHAPE ".row.col.s32.b1.b1.s32.and.popc", exec_words<And, ROWS, WORDS>, __VA_ARGS__  \
    }
#define QUAD_PAIRS(A, B, ROW_A, ROW_B)                                                                  \
    {"m8n8k4." A "." B ".f16.f16.f16.f16", exec_quad_pairs<ROW_A, ROW_B, false, false>, 4, 2, 2, 4},    \
        {"m8n8k4." A "." B ".f32.f16.f16.f16", exec_quad_pairs<ROW_A, ROW_B, true, false>, 8, 2, 2, 4}, \
        {"m8n8k4." A "." B ".f32.f16.f16.f32", exec_quad_pairs<ROW_A, ROW_B, true, true>, 8, 2, 2, 8}

constexpr MmaForm kForms[] = {
    INTEGERS(16, 8, "s8", "u8"),
    INTEGERS(32, 4, "s4", "u4"),
    BITS_OF("m8n8k128", 8, 4, 2, 1, 1, 2),
    BITS_OF("m16n8k128", 16, 4, 4, 2, 1, 4),
    BITS_OF("m16n8k256", 16, 8, 4, 4, 2, 4),
    QUAD_PAIRS("row", "row", true, true),
    QUAD_PAIRS("row", "col", true, false),
    QUAD_PAIRS("col", "row", false, true),
    QUAD_PAIRS("col", "col", false, false),
};

}  // namespace

const MmaForm *find_mma_small(std::string_view name) {
    for (const MmaForm &form : kForms)
        if (form.name == name) return &form;
    return nullptr;
}

namespace {

template <unsigned Rows, unsigned K>
void exec_mma_double(Warp &w, const Op &op) {
    constexpr unsigned kHalves = Rows / 8, kA = kHalves * K / 4, kB = K / 4, kD = 2 * kHalves;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const uint32_t *a = slots + kD, *b = a + kA, *c = b + kB;
    double sums[kD][kLanes];
    for (unsigned i = 0; i < kD; ++i) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned group = lane / 4, column = 2 * (lane % 4) + i % 2;
            double sum = w.lanes<double>(c[i])[lane];
            for (unsigned k = 0; k < K; ++k)
                sum = std::fma(w.lanes<double>(a[i / 2 + kHalves * (k / 4)])[4 * group + k % 4],
                               w.lanes<double>(b[k / 4])[4 * column + k % 4], sum);
            sums[i][lane] = sum;
        }
    }
    for (unsigned i = 0; i < kD; ++i) write_lanes<double>(w, slots[i], [&](unsigned lane) { return sums[i][lane]; });
}

constexpr MmaForm kDoubleForms[] = {
    {"m8n8k4.row.col.f64.f64.f64.f64", exec_mma_double<8, 4>, 2, 1, 1, 2},
    {"m16n8k4.row.col.f64.f64.f64.f64", exec_mma_double<16, 4>, 4, 2, 1, 4},
    {"m16n8k8.row.col.f64.f64.f64.f64", exec_mma_double<16, 8>, 4, 4, 2, 4},
    {"m16n8k16.row.col.f64.f64.f64.f64", exec_mma_double<16, 16>, 4, 8, 4, 4},
};

}  // namespace

const MmaForm *find_mma_double(std::string_view name) {
    for (const MmaForm &form : kDoubleForms)
        if (form.name == name) return &form;
    return nullptr;
}

}  // namespace warpsim
