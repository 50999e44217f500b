#include "exec/tracking_wgmma.h"

#include <bit>

#include "core/op_formats.h"
#include "definedness/linear.h"

namespace warpsim {

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
