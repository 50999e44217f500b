// wgmma.mma_async: D of 64 x n, a quarter of the rows in each of four warps. Operands are read and results computed
// when it is issued; until a wait covers it, registers and shared operands count as in use. Sums of floats are formed
// as instructions/mma/tensor_sum.h says.
//
// Fragments are those of mma.sync (instructions/mma/mma.h), more of them side by side: D's registers 4j to 4j + 3 (f16:
// 2j, 2j + 1) are columns 8j to 8j + 7.
#include <algorithm>
#include <cstring>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "core/round_up.h"
#include "hazard/shared_shadow.h"
#include "instructions/mma/tensor_elements.h"
#include "instructions/mma/tensor_sum.h"
#include "instructions/wgmma/wgmma.h"
#include "machine/completions.h"
#include "machine/context.h"
#include "machine/core_ops.h"

namespace warpsim {
namespace {

using std::to_string;

constexpr size_t kMostInFlight = 1024;  // a kernel that never waits must not eat the host's memory
constexpr unsigned kRows = 64, kWarpRows = 16, kMostColumns = 256;

// The warps of the group, and what the op says.
struct Issue {
    Warp *warps[kWarpgroupWarps];
    const Op &op;
    WgmmaForm form;
    const uint32_t *d_slots, *a_slots;
    unsigned columns, wide_columns;  // wide: a multiple of kSumColumns
    bool adds = true;                // scale-d
    std::shared_ptr<const WgmmaTile> a, b;

    Issue(Warp &first, const Op &o) : op(o), form(unpack<WgmmaForm>(o.imm)) {
        BlockContext &block = *context_of(first).owner;
        for (unsigned i = 0; i < kWarpgroupWarps; ++i) warps[i] = block.contexts[first.id + i].get();
        columns = form.n8 * 8u;
        wide_columns = round_up(columns, kSumColumns);
        d_slots = block.program->operand_list.data() + op.list;
        a_slots = d_slots + (form.d == ptx::Type::f16 ? columns / 4 : columns / 2);
    }
    std::string text() const {
        const Program &program = *warps[0]->block->program;
        return program.debug[op.index].text + " at " + where(program, op.index);
    }
};

// The value of a 64-bit operand that all threads must share. False: they do not, and it has been reported.
bool common_value(const Issue &issue, uint32_t slot, const char *what, uint64_t &value) {
    value = issue.warps[0]->lanes<uint64_t>(slot)[0];
    for (const Warp *w : issue.warps) {
        const uint64_t *lanes = w->lanes<uint64_t>(slot);
        uint64_t differ = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) differ |= lanes[lane] ^ value;
        if (!differ) continue;
        const unsigned lane =
            unsigned(std::find_if(lanes, lanes + kLanes, [&](uint64_t v) { return v != value; }) - lanes);
        report_hazard(*issue.warps[0], issue.op, HazardKind::wgmma, 0, 0,
                      issue.text() + " has another " + what + " in thread " + to_string(w->id * kLanes + lane) +
                          " than in thread " + to_string(issue.warps[0]->id * kLanes) +
                          ": all threads of the warpgroup must give the same");
        return false;
    }
    return true;
}

bool read_scale_d(Issue &issue) {
    unsigned set = 0;
    for (const Warp *w : issue.warps) set += unsigned(__builtin_popcount(w->predicate(issue.op.c)));
    issue.adds = set != 0;
    if (set == 0 || set == kWarpgroupWarps * kLanes) return true;
    report_hazard(*issue.warps[0], issue.op, HazardKind::wgmma, 0, 0,
                  issue.text() + " has scale-d true in " + to_string(set) +
                      " of its 128 threads: all threads of the warpgroup must give the same");
    return false;
}

// Copies have brought all of the tile, so that it lies as wgmma reads it although its pattern begins elsewhere. Where
// nobody looks at who wrote what, it may be so.
bool lies_as_copied(const Warp &w, const WgmmaTile &tile) {
    if (!tile.right_for_copies || tile.places->end > w.block->shared_bytes) return false;
    return !w.block->shadow || w.block->shadow->brought_by_copies(*tile.places);
}

// The tile that a descriptor names, checked.
std::shared_ptr<const WgmmaTile> find_tile(const Issue &issue, bool is_a) {
    Warp &w = *issue.warps[0];
    uint64_t descriptor;
    const std::string name = is_a ? "descriptor of A" : "descriptor of B";
    if (!common_value(issue, is_a ? issue.op.a : issue.op.b, name.c_str(), descriptor)) return nullptr;
    std::shared_ptr<const WgmmaTile> tile = w.block->completions->wgmma.tiles.find(
        descriptor, is_a ? kRows : issue.columns, is_a ? issue.form.a_mn_major : issue.form.b_mn_major,
        ptx::type_bytes(is_a ? issue.form.a : issue.form.b));
    if (!tile->fault.empty() && !lies_as_copied(w, *tile))
        report_hazard(w, issue.op, HazardKind::misaligned, 0, tile->places->first,
                      "the " + name + " of " + issue.text() + " " + tile->fault);
    if (tile->places->end > w.block->shared_bytes) {
        const WgmmaDescriptor d = WgmmaDescriptor::unpack(descriptor);
        report_hazard(w, issue.op, HazardKind::out_of_bounds, 0, tile->places->end - kChunkBytes,
                      "the " + name + " of " + issue.text() + " leads out of the block's " +
                          to_string(w.block->shared_bytes) + " bytes of shared memory: it begins at " +
                          to_string(d.start) + ", the leading byte offset is " + to_string(d.leading) +
                          ", the stride byte offset " + to_string(d.stride) + ", and the last byte would be " +
                          to_string(tile->places->end - 1));
        return nullptr;
    }
    return tile;
}

// to[column][row] = from[row][column], in blocks of 8 x 8.
template <class Value>
void transpose(const Value *from, unsigned rows, unsigned columns, Value *to) {
    using Vector = typename VectorOf<Value>::type;
    for (unsigned row = 0; row < rows; row += 8) {
        for (unsigned column = 0; column < columns; column += 8) {
            Vector block[8];
            for (unsigned i = 0; i < 8; ++i)
                std::memcpy(&block[i], from + size_t(row + i) * columns + column, sizeof(Vector));
            transpose8(block);
            for (unsigned i = 0; i < 8; ++i) std::memcpy(to + (column + i) * rows + row, &block[i], sizeof(Vector));
        }
    }
}

// Matrices of many columns lie by blocks of kSumColumns, each line by line, each 8 columns in C's order: where this
// column of a line does, the first of 8.
constexpr size_t place(unsigned lines, unsigned line, unsigned column) {
    return (column / kSumColumns * lines + line) * kSumColumns + column % kSumColumns;
}

// A as 64 rows of K, and B as K lines of wide_columns.
template <class Value, unsigned K>
struct Factors {
    alignas(64) Value a[kRows * K];
    alignas(64) Value b[K * kMostColumns];
};

// A line of k of a K-major tile.
template <class Element>
inline void load_line(const Issue &issue, const WgmmaTile &tile, unsigned line, typename Element::Value *to) {
    const std::byte *const shared = issue.warps[0]->block->shared;
    const uint32_t *const chunks = tile.places->chunks.data() + 2 * line;
    constexpr unsigned kHalf = 4 * Element::kPerRegister;
    Element::widen(shared + chunks[0], to, kHalf);
    asm volatile("" : : : "memory");  // the compiler must not put both together from scalar registers instead
    Element::widen(shared + chunks[1], to + kHalf, kHalf);
}

// Calls f(k, first m or n, values of 8 of them) for all of an MN-major tile, which is of 16-bit elements.
template <class Element, class F>
inline void for_chunks(const Issue &issue, const WgmmaTile &tile, F f) {
    const std::byte *const shared = issue.warps[0]->block->shared;
    const uint32_t *chunk = tile.places->chunks.data();
    for (unsigned line = 0; line < tile.lines; ++line) {
        for (unsigned i = 0; i < tile.chunks; ++i, ++chunk) {
            typename VectorOf<typename Element::Value>::type values;
            Element::widen(shared + *chunk, reinterpret_cast<typename Element::Value *>(&values), 8);
            f(line, 8 * i, values);
        }
    }
}

template <class Element, unsigned K>
void load_a(const Issue &issue, typename Element::Value *a) {
    using Value = typename Element::Value;
    constexpr unsigned kColumns = 4 * Element::kPerRegister;
    if (issue.form.a_in_registers) {
        alignas(64) Value tile[8][kColumns];
        for (unsigned warp = 0; warp < kWarpgroupWarps; ++warp) {
            for (unsigned i = 0; i < 4; ++i) {
                Element::widen(issue.warps[warp]->regs + issue.a_slots[i], &tile[0][0], 8 * kColumns);
                for (unsigned row = 0; row < 8; ++row)
                    std::memcpy(a + (warp * kWarpRows + i % 2 * 8 + row) * K + i / 2 * kColumns, tile[row],
                                sizeof tile[row]);
            }
        }
        return;
    }
    if constexpr (Element::kPerRegister == 2) {
        if (issue.a->mn_major) {
            alignas(64) Value columns[K * kRows];
            for_chunks<Element>(issue, *issue.a, [&](unsigned k, unsigned row, const auto &values) {
                std::memcpy(columns + k * kRows + row, &values, sizeof values);
            });
            return transpose(columns, K, kRows, a);
        }
    }
    for (unsigned row = 0; row < kRows; ++row) load_line<Element>(issue, *issue.a, row, a + row * K);
}

template <class Element, unsigned K>
void load_b(const Issue &issue, typename Element::Value *b) {
    using Value = typename Element::Value;
    using Vector = typename VectorOf<Value>::type;
    for (unsigned column = issue.columns; column < issue.wide_columns; column += 8)
        for (unsigned k = 0; k < K; ++k) std::fill_n(b + place(K, k, column), 8, Value{});
    if constexpr (Element::kPerRegister == 2) {
        if (issue.b->mn_major)
            return for_chunks<Element>(issue, *issue.b, [&](unsigned k, unsigned column, const Vector &values) {
                const Vector ordered = __builtin_shufflevector(values, values, 0, 2, 4, 6, 1, 3, 5, 7);
                std::memcpy(b + place(K, k, column), &ordered, sizeof ordered);
            });
    }
    for (unsigned column = 0; column < issue.columns; column += 8) {
        alignas(64) Value lines[8][K];
        for (unsigned i = 0; i < 8; ++i) load_line<Element>(issue, *issue.b, column + kColumnOrder[i], lines[i]);
        for (unsigned k = 0; k < K; k += 8) {
            Vector block[8];
            for (unsigned i = 0; i < 8; ++i) std::memcpy(&block[i], &lines[i][k], sizeof(Vector));
            transpose8(block);
            for (unsigned i = 0; i < 8; ++i) std::memcpy(b + place(K, k + i, column), &block[i], sizeof(Vector));
        }
    }
}

// A warp's D as 16 rows of wide_columns, of 32-bit elements.
void load_d(const Issue &issue, const Warp &w, std::byte *d) {
    for (unsigned row = 0; row < kWarpRows; ++row) {
        for (unsigned column = 0; column < issue.columns; column += 8) {
            const uint32_t *slots = issue.d_slots + column / 2 + row / 8 * 2;
            std::byte *to = d + 4 * place(kWarpRows, row, column);
            std::memcpy(to, w.regs + slots[0] + row % 8 * 16, 16);
            std::memcpy(to + 16, w.regs + slots[1] + row % 8 * 16, 16);
        }
        for (unsigned column = issue.columns; column < issue.wide_columns; column += 8)
            std::memset(d + 4 * place(kWarpRows, row, column), 0, 32);
    }
}

void store_d(const Issue &issue, const Warp &w, const std::byte *d) {
    for (unsigned row = 0; row < kWarpRows; ++row) {
        for (unsigned column = 0; column < issue.columns; column += 8) {
            const uint32_t *slots = issue.d_slots + column / 2 + row / 8 * 2;
            const std::byte *from = d + 4 * place(kWarpRows, row, column);
            std::memcpy(w.regs + slots[0] + row % 8 * 16, from, 16);
            std::memcpy(w.regs + slots[1] + row % 8 * 16, from + 16, 16);
        }
    }
}

// The same of f16: a register is a tile of 8 rows and 8 columns.
void load_half_d(const Issue &issue, const Warp &w, float *d) {
    std::fill_n(d, kWarpRows * issue.wide_columns, 0.0f);
    alignas(64) float tile[8][8];
    for (unsigned i = 0; i < issue.columns / 4; ++i) {
        F16::widen(reinterpret_cast<const uint16_t *>(w.regs + issue.d_slots[i]), &tile[0][0], 64);
        for (unsigned row = 0; row < 8; ++row)
            for (unsigned j = 0; j < 8; ++j)
                d[place(kWarpRows, i % 2 * 8 + row, i / 2 * 8) + j] = tile[row][kColumnOrder[j]];
    }
}

void store_half_d(const Issue &issue, const Warp &w, const float *d) {
    alignas(64) float tile[8][8];
    for (unsigned i = 0; i < issue.columns / 4; ++i) {
        for (unsigned row = 0; row < 8; ++row)
            for (unsigned j = 0; j < 8; ++j)
                tile[row][kColumnOrder[j]] = d[place(kWarpRows, i % 2 * 8 + row, i / 2 * 8) + j];
        F16::narrow(&tile[0][0], reinterpret_cast<uint16_t *>(w.regs + issue.d_slots[i]), 64);
    }
}

template <class ElementA, class ElementB>
void multiply_floats(const Issue &issue) {
    constexpr unsigned K = 8 * ElementA::kPerRegister;
    Factors<float, K> factors;
    alignas(64) int16_t a_exponents[kRows * K], b_exponents[K * kMostColumns];
    load_a<ElementA, K>(issue, factors.a);
    load_b<ElementB, K>(issue, factors.b);
    if (issue.form.negate_a != issue.form.negate_b)
        for (float &value : factors.a) value = -value;
    factor_exponents(factors.a, a_exponents, kRows * K, ElementA::kLeast);
    factor_exponents(factors.b, b_exponents, K * issue.wide_columns, ElementB::kLeast);
    const bool half = issue.form.d == ptx::Type::f16;
    if (!half) {
        WgmmaSums sums{factors.a,          factors.b, a_exponents,   b_exponents,   K,
                       issue.wide_columns, {},        issue.d_slots, issue.columns, issue.adds};
        for (unsigned i = 0; i < kWarpgroupWarps; ++i) sums.registers[i] = issue.warps[i]->regs;
        if (wgmma_sums(sums)) return;
    }
    alignas(64) float d[kWarpRows * kMostColumns];
    for (unsigned i = 0; i < kWarpgroupWarps; ++i) {
        const Warp &w = *issue.warps[i];
        half ? load_half_d(issue, w, d) : load_d(issue, w, reinterpret_cast<std::byte *>(d));
        for (unsigned column = 0; column < issue.wide_columns; column += kSumColumns) {
            const size_t b = place(K, 0, column);
            exact_sums({factors.a + i * kWarpRows * K, factors.b + b, a_exponents + i * kWarpRows * K, b_exponents + b,
                        d + place(kWarpRows, 0, column), kWarpRows, K, issue.adds},
                       {ElementA::kPerRegister == 4, half});
        }
        half ? store_half_d(issue, w, d) : store_d(issue, w, reinterpret_cast<const std::byte *>(d));
    }
}

template <class ElementA, class ElementB>
void multiply_integers(const Issue &issue) {
    constexpr unsigned K = 8 * ElementA::kPerRegister;
    Factors<int32_t, K> factors;
    load_a<ElementA, K>(issue, factors.a);
    load_b<ElementB, K>(issue, factors.b);
    alignas(64) int32_t d[kWarpRows * kMostColumns];
    for (unsigned i = 0; i < kWarpgroupWarps; ++i) {
        const Warp &w = *issue.warps[i];
        load_d(issue, w, reinterpret_cast<std::byte *>(d));
        for (unsigned column = 0; column < issue.wide_columns; column += kSumColumns) {
            const int32_t *const b = factors.b + place(K, 0, column);
            for (unsigned row = 0; row < kWarpRows; ++row) {
                alignas(64) int32_t sum[kSumColumns] = {};
                for (unsigned k = 0; k < K; ++k) {
                    const int32_t mine = factors.a[(i * kWarpRows + row) * K + k];
                    for (unsigned c = 0; c < kSumColumns; ++c) sum[c] += mine * b[k * kSumColumns + c];
                }
                int32_t *to = d + place(kWarpRows, row, column);
                for (unsigned c = 0; c < kSumColumns; ++c) {
                    const int64_t exact = int64_t{issue.adds ? to[c] : 0} + sum[c];
                    to[c] = issue.form.saturate ? int32_t(std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX))
                                                : int32_t(exact);
                }
            }
        }
        store_d(issue, w, reinterpret_cast<const std::byte *>(d));
    }
}

void multiply(const Issue &issue) {
    using ptx::Type;
    const bool b_e4m3 = issue.form.b == Type::e4m3, b_signed = issue.form.b == Type::s8;
    switch (issue.form.a) {
        case Type::f16:
            return multiply_floats<HalfElement, HalfElement>(issue);
        case Type::bf16:
            return multiply_floats<BfloatElement, BfloatElement>(issue);
        case Type::tf32:
            return multiply_floats<Tf32Element, Tf32Element>(issue);
        case Type::e4m3:
            return b_e4m3 ? multiply_floats<E4m3, E4m3>(issue) : multiply_floats<E4m3, E5m2>(issue);
        case Type::e5m2:
            return b_e4m3 ? multiply_floats<E5m2, E4m3>(issue) : multiply_floats<E5m2, E5m2>(issue);
        case Type::s8:
            return b_signed ? multiply_integers<S8, S8>(issue) : multiply_integers<S8, U8>(issue);
        default:
            return b_signed ? multiply_integers<U8, S8>(issue) : multiply_integers<U8, U8>(issue);
    }
}

}  // namespace

void exec_wgmma(Warp &first, const Op &op) {
    Issue issue(first, op);
    WgmmaQueue &queue = first.block->completions->wgmma.of(*first.block);
    if (!read_scale_d(issue)) return;
    if (!issue.form.a_in_registers && !(issue.a = find_tile(issue, true))) return;
    if (!(issue.b = find_tile(issue, false))) return;
    uint32_t reads = 0;
    if (first.block->shadow)
        reads =
            first.block->shadow->wgmma_issue(issue.warps, op, {issue.a ? issue.a->places : nullptr, issue.b->places});
    multiply(issue);
    if (first.block->definedness && first.block->shadow->undefined()) [[unlikely]]
        note_wgmma_tiles(issue.warps, op, issue.form, issue.a.get(), *issue.b);
    for (const Warp *w : issue.warps) {
        WgmmaWarp &warp = queue.warps[w->id];
        if (warp.in_flight.size() >= kMostInFlight) warp.in_flight.erase(warp.in_flight.begin());
        warp.in_flight.push_back({&op, warp.committed, reads, false});
    }
}

}  // namespace warpsim
