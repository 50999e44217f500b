#include "instructions/wgmma/wgmma.h"

#include <bit>

#include "core/op_formats.h"
#include "definedness/linear.h"
#include "hazard/shared_shadow.h"
#include "machine/completions.h"
#include "machine/context.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

constexpr unsigned kWarpRows = 16;

// Lines of D that an operand's tile gives: rows of A, columns of B.
struct UndefinedLines {
    std::vector<bool> lines;
    uint32_t address = 0;  // of the first undefined byte
    bool any = false;

    UndefinedLines(const SharedShadow &shadow, const WgmmaTile &tile, unsigned element_bytes) {
        const unsigned per_chunk = kChunkBytes / element_bytes;
        lines.resize(tile.mn_major ? tile.chunks * per_chunk : tile.lines);
        for (uint32_t i = 0; i < tile.places->chunks.size(); ++i) {
            const uint32_t chunk = tile.places->chunks[i], first = shadow.first_undefined(chunk, kChunkBytes);
            if (first == chunk + kChunkBytes) continue;
            if (!any) address = first;
            any = true;
            if (!tile.mn_major) {
                lines[i / tile.chunks] = true;
            } else {
                for (unsigned e = 0; e < per_chunk; ++e) lines[i % tile.chunks * per_chunk + e] = true;
            }
        }
    }
};

// The elements of D in register i of a lane: their row in the warp and the first of their columns.
struct Place {
    unsigned row, column;
    Place(bool half, unsigned i, unsigned lane)
        : row(lane / 4 + 8 * (half ? i % 2 : i / 2 % 2)),
          column(2 * (lane % 4) + (half ? i / 2 * 8 : i / 4 * 8 + i % 2)) {}
};

void undefine_lines(Warp &w, unsigned warp, const Op &op, const WgmmaForm &form, const UndefinedLines *a,
                    const UndefinedLines &b, const LaneOrigins &origins) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const bool half = form.d == ptx::Type::f16;
    const unsigned registers = op.list_count - (form.a_in_registers ? 4u : 0u);
    if (!w.undefined) begin_tracking(context_of(w));
    for (unsigned i = 0; i < registers; ++i) {
        uint32_t lanes = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const Place place(half, i, lane);
            const bool undefined = (a && a->lines[warp * kWarpRows + place.row]) || b.lines[place.column] ||
                                   (half && b.lines[place.column + 1]);
            lanes |= uint32_t(undefined) << lane;
        }
        if (!lanes) continue;
        w.undefined->undefine({slots[i], 4}, lanes);
        set_origins(*w.undefined, {slots[i], 4}, lanes, origins);
    }
}

}  // namespace

void note_wgmma_tiles(Warp *const (&warps)[4], const Op &op, const WgmmaForm &form, const WgmmaTile *a,
                      const WgmmaTile &b) {
    Warp &first = *warps[0];
    const SharedShadow &shadow = *first.block->shadow;
    const UndefinedLines of_b(shadow, b, ptx::type_bytes(form.b));
    const UndefinedLines of_a(shadow, a ? *a : b, ptx::type_bytes(form.a));
    const bool any_a = a && of_a.any;
    if (!any_a && !of_b.any) return;
    const uint32_t at = any_a ? of_a.address : of_b.address, stored = first.block->shadow->stored().origin(at);
    LaneOrigins origins;
    origins.fill(stored ? stored : first.block->definedness->origin(Definedness::Source::shared, first, op, 0, at));
    for (unsigned i = 0; i < 4; ++i) undefine_lines(*warps[i], i, op, form, any_a ? &of_a : nullptr, of_b, origins);
}

void passes_wgmma(Warp &w, const Op &op, const DataFlow &flow, uint32_t) {
    const WgmmaForm form = unpack<WgmmaForm>(op.imm);
    for (uint32_t slot : {op.a, op.b})
        if (slot != kNoSlot) operand_matters(w, op, {slot, 8}, kAllLanes, Use::address);
    operand_matters(w, op, {op.c, 0}, kAllLanes, Use::input);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const unsigned count = op.list_count - (form.a_in_registers ? 4u : 0u);
    const bool adds = w.predicate(op.c) != 0;
    uint32_t rows[2] = {};  // lanes of the rows of A that are undefined, of the upper and the lower 8
    LaneOrigins origins{};
    for (unsigned i = 0; form.a_in_registers && i < 4; ++i) {
        const uint32_t found = w.undefined->undefined({slots[count + i], 4});
        for (unsigned group = 0; group < 8; ++group)
            if (found >> 4 * group & 0xf) rows[i % 2] |= 0xfu << 4 * group;
        if (found) origins.fill(origin_id(w.undefined->origins(slots[count + i])[std::countr_zero(found)]));
    }
    (void)flow;
    for (unsigned i = 0; i < count; ++i) {
        const OperandSlot to{slots[i], 4};
        if (!adds) w.undefined->define(to, kAllLanes);
        const uint32_t unknown = rows[form.d == ptx::Type::f16 ? i % 2 : i / 2 % 2];
        if (!unknown) continue;
        w.undefined->undefine(to, unknown);
        set_origins(*w.undefined, to, unknown, origins);
    }
}

}  // namespace warpsim
