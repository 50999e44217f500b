// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements between shared memory and fragments. Eight lanes give
// the rows' addresses of each matrix, 16 bytes a row; in a fragment register lane 4r + t holds columns 2t, 2t + 1 of
// row r, so that a slot is the matrix itself in row-major order.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "core/text.h"
#include "core/warp.h"
#include "counters/accesses.h"
#include "hazard/shared_shadow.h"
#include "instructions/mma/mma.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

constexpr unsigned kRowBytes = 16, kMatrixRows = 8;
struct alignas(64) Matrix {
    std::byte row[kMatrixRows][kRowBytes];
};

void transpose(Matrix &matrix) {
    typedef uint16_t Row __attribute__((vector_size(16)));
    Row rows[8], mixed[8];
    std::memcpy(rows, &matrix, sizeof rows);
    // Interleaving rows i and i + 4 moves the top bit of the row's number below the column's: three times swaps them.
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < 4; ++i) {
            mixed[2 * i] = __builtin_shuffle(rows[i], rows[i + 4], Row{0, 8, 1, 9, 2, 10, 3, 11});
            mixed[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + 4], Row{4, 12, 5, 13, 6, 14, 7, 15});
        }
        std::memcpy(rows, mixed, sizeof rows);
    }
    std::memcpy(&matrix, rows, sizeof rows);
}

// A row's address as an offset in shared memory; false where it is not there, which has been reported.
bool check_row(Warp &w, const Op &op, unsigned lane, uint64_t address, uint32_t &offset) {
    const uint32_t size = w.block->shared_bytes;
    if (op.extra & kMatrixGeneric) {
        if ((address & kWindowMask) != kSharedWindow) {
            report_hazard(w, op, HazardKind::invalid_address, static_cast<int>(lane), address,
                          instruction_at(*w.block->program, op.index) +
                              " gives a matrix row's address that is not in shared memory");
            return false;
        }
        address &= ~kWindowMask;
    }
    offset = static_cast<uint32_t>(address);
    if (address % kRowBytes) {
        report_hazard(w, op, HazardKind::misaligned, static_cast<int>(lane), address,
                      instruction_at(*w.block->program, op.index) + " gives a matrix row the address " + hex(offset) +
                          ", and it must be a multiple of 16 bytes");
    } else if (address > size || size - address < kRowBytes) {
        report_hazard(w, op, HazardKind::out_of_bounds, static_cast<int>(lane), address,
                      instruction_at(*w.block->program, op.index) + " touches a matrix row of 16 bytes at offset " +
                          std::to_string(address) + " of " + std::to_string(size) + " bytes of shared memory");
    } else {
        return true;
    }
    return false;
}

// The row addresses of lanes 0..count-1 as offsets in shared memory. Returns the lanes whose row is there.
uint32_t row_addresses(Warp &w, const Op &op, unsigned count, uint32_t *offset) {
    const uint32_t all = count == 32 ? kAllLanes : (1u << count) - 1;
    if (op.a != kNoSlot && !(op.extra & (kMatrixGeneric | kMatrixAddress64)) && w.block->shared_bytes >= kRowBytes) {
        const uint32_t *base = w.lanes<uint32_t>(op.a), add = static_cast<uint32_t>(op.imm);
        const uint32_t last = w.block->shared_bytes - kRowBytes;
        uint32_t bits = 0, past = 0;
        for (unsigned lane = 0; lane < count; ++lane) {
            const uint32_t at = base[lane] + add;
            offset[lane] = at;
            bits |= at;
            past |= at > last;
        }
        if (!past && bits % kRowBytes == 0) return all;
    }
    uint32_t good = 0;
    for (unsigned lane = 0; lane < count; ++lane) {
        uint64_t address = static_cast<uint64_t>(op.imm);
        if (op.a != kNoSlot)
            address += op.extra & kMatrixAddress64 ? w.lanes<uint64_t>(op.a)[lane] : w.lanes<uint32_t>(op.a)[lane];
        if (!(op.extra & (kMatrixAddress64 | kMatrixGeneric))) address = static_cast<uint32_t>(address);
        offset[lane] = 0;
        if (check_row(w, op, lane, address, offset[lane])) good |= 1u << lane;
    }
    return good;
}

// Eight rows go through the 32 banks together: a row takes 4 neighbouring ones, the same row asked for twice is read
// once.
unsigned wavefronts(const uint32_t *offset, uint32_t lanes) {
    uint32_t groups = 0;
    for (unsigned i = 0; i < kMatrixRows; ++i) groups |= 1u << (offset[i] / kRowBytes % 8);
    if (lanes == 0xff && groups == 0xff) return 1;
    unsigned count[8] = {}, most = 1;
    for (unsigned i = 0; i < kMatrixRows; ++i) {
        bool again = !(lanes >> i & 1);
        for (unsigned j = 0; j < i; ++j) again = again || ((lanes >> j & 1) && offset[j] == offset[i]);
        if (!again) most = std::max(most, ++count[offset[i] / kRowBytes % 8]);
    }
    return most;
}

void count_wavefronts(Warp &w, const Op &op, unsigned matrices, const uint32_t *offset, uint32_t good) {
    SharedCost cost{0, matrices};
    for (unsigned i = 0; i < matrices; ++i)
        cost.wavefronts += wavefronts(offset + kMatrixRows * i, good >> kMatrixRows * i & 0xff);
    OpStats &stats = w.stats[op.index];
    stats.shared_wavefronts += cost.wavefronts;
    stats.shared_ideal += cost.ideal;
    if (w.accesses) [[unlikely]]
        w.accesses->shared(op, offset, kRowBytes, good, cost, matrices);
}

void store(const Warp &w, uint32_t slot, const Matrix &matrix) {
    if (w.exec == kAllLanes) {
        std::memcpy(w.regs + slot, &matrix, sizeof matrix);
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
        if (w.exec >> lane & 1)
            std::memcpy(w.regs + slot + 4 * lane, reinterpret_cast<const std::byte *>(&matrix) + 4 * lane, 4);
}

void exec_ldmatrix(Warp &w, const Op &op) {
    const unsigned matrices = op.list_count;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    uint32_t offset[kLanes] = {};
    const uint32_t good = row_addresses(w, op, matrices * kMatrixRows, offset);
    count_wavefronts(w, op, matrices, offset, good);
    if (w.block->shadow && good) w.block->shadow->access(w, op, Access::read, offset, kRowBytes, good);
    Matrix loaded[4];  // all read before the first write: an address register may be a destination too
    const auto each_row = [&](auto read) {
        for (unsigned i = 0; i < matrices; ++i) {
            for (unsigned row = 0; row < kMatrixRows; ++row) {
                const unsigned lane = kMatrixRows * i + row;
                if (good >> lane & 1) {
                    read(offset[lane], loaded[i].row[row]);
                } else {
                    std::memset(loaded[i].row[row], 0, kRowBytes);
                }
            }
            if (op.extra & kMatrixTranspose) transpose(loaded[i]);
        }
    };
    each_row([&](uint32_t from, std::byte *row) { std::memcpy(row, w.block->shared + from, kRowBytes); });
    for (unsigned i = 0; i < matrices; ++i) store(w, slots[i], loaded[i]);
    if (!tracks_shared(w)) return;
    each_row([&](uint32_t from, std::byte *row) {
        w.block->shadow->undefined_bits(from, kRowBytes, reinterpret_cast<uint8_t *>(row));
    });
    for (unsigned i = 0; i < matrices; ++i) {
        uint32_t from[kLanes];  // transposed, it is another row's; all are this instruction's
        for (unsigned lane = 0; lane < kLanes; ++lane) from[lane] = offset[kMatrixRows * i + lane / 4];
        note_loaded_fragment(w, op, {slots[i], 4}, &loaded[i], from);
    }
}

void exec_stmatrix(Warp &w, const Op &op) {
    const unsigned matrices = op.list_count;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    uint32_t offset[kLanes] = {};
    const uint32_t good = row_addresses(w, op, matrices * kMatrixRows, offset);
    count_wavefronts(w, op, matrices, offset, good);
    Matrix stored[4];
    const auto take = [&](const std::byte *regs) {
        for (unsigned i = 0; i < matrices; ++i) {
            std::memcpy(&stored[i], regs + slots[i], sizeof(Matrix));
            if (op.extra & kMatrixTranspose) transpose(stored[i]);
        }
    };
    take(w.regs);
    if (w.block->shadow && good) {
        StoredValues values;
        values.components = 4;
        values.bytes = 4;
        values.stride = kRowBytes;
        for (unsigned c = 0; c < 4; ++c) values.slot[c] = &stored[0].row[0][0] + 4 * c;
        w.block->shadow->access(w, op, Access::write, offset, kRowBytes, good, &values);
    }
    for (unsigned lane = 0; lane < matrices * kMatrixRows; ++lane)
        if (good >> lane & 1)
            std::memcpy(w.block->shared + offset[lane], stored[lane / kMatrixRows].row[lane % kMatrixRows], kRowBytes);
    if (!tracks_shared(w)) return;
    if (w.undefined)
        take(w.undefined->bits());
    else
        std::memset(stored, 0, sizeof stored);
    const uint32_t origin = w.undefined ? first_origin(w, op) : 0;
    for (unsigned lane = 0; lane < matrices * kMatrixRows; ++lane)
        if (good >> lane & 1)
            w.block->shadow->stored().set(
                offset[lane], kRowBytes,
                reinterpret_cast<uint8_t *>(stored[lane / kMatrixRows].row[lane % kMatrixRows]), origin);
}

void exec_movmatrix(Warp &w, const Op &op) {
    Matrix matrix;
    std::memcpy(&matrix, w.regs + op.a, sizeof matrix);
    transpose(matrix);
    store(w, op.dst, matrix);
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 {r...}, [p]      stmatrix...: [p], {r...}
void lower_matrix_move(Lowering &l, const Instruction &in, bool loads) {
    const size_t matrices = in.has("x4") ? 4 : in.has("x2") ? 2 : 1;
    if (in.operands[loads ? 0 : 1].kind != Operand::Kind::vector) l.unsupported(in, "the fragment is a vector");
    const std::vector<Operand> fragment = registers_of(in.operands[loads ? 0 : 1]);
    expect_count(l, in, "the fragment", fragment.size(), matrices);
    const Lowering::Address address = l.address(in.operands[loads ? 1 : 0]);
    const bool shared = in.has("shared") || in.has("shared::cta") || address.space_of_symbol == ptx::Space::shared;
    std::vector<uint32_t> slots;
    for (const Operand &operand : fragment)
        slots.push_back(loads ? l.destination(operand, Type::b32) : l.source(operand, Type::b32));
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.list = list;
    op.list_count = static_cast<uint16_t>(slots.size());
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = (in.has("trans") ? kMatrixTranspose : 0) | (address.slot_bytes == 8 ? kMatrixAddress64 : 0) |
               (shared ? 0 : kMatrixGeneric);
}

void lower_ldmatrix(Lowering &l, const Instruction &in) {
    lower_matrix_move(l, in, true);
}

void lower_stmatrix(Lowering &l, const Instruction &in) {
    lower_matrix_move(l, in, false);
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
void lower_movmatrix(Lowering &l, const Instruction &in) {
    const uint32_t a = l.source(in.operands[1], Type::b32), dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = a;
}

constexpr InstructionRow kRows[] = {
    {"ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared,.shared::cta}.b16", "d, [a]", OpClass::ldmatrix,
     Flow::warp_sync, exec_ldmatrix, lower_ldmatrix, passes_load},
    {"stmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared,.shared::cta}.b16", "[a], b", OpClass::stmatrix,
     Flow::warp_sync, exec_stmatrix, lower_stmatrix, passes_store},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "d, a", OpClass::shuffle, Flow::warp_sync, exec_movmatrix,
     lower_movmatrix, passes_copies},
};

}  // namespace

std::span<const InstructionRow> matrix_moves_rows() {
    return kRows;
}

}  // namespace warpsim
