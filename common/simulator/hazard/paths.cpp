#include "hazard/paths.h"

#include <algorithm>
#include <vector>

#include "core/op_formats.h"
#include "core/program.h"

namespace warpsim {
namespace {

class Ways {
  public:
    Ways(const Program &program, bool warps) : program_(program), warps_(warps), seen_(program.ops.size()) {}

    bool lead(uint32_t from, uint32_t to) {
        leave(from);
        while (!open_.empty()) {
            const uint32_t at = open_.back();
            open_.pop_back();
            if (at == to) return true;
            if (!waits(program_.ops[at])) leave(at);
        }
        return false;
    }

  private:
    bool waits(const Op &op) const {
        if (op.guard != kNoSlot) return false;
        if (op.flow == Flow::block_sync) return unpack<BarrierForm>(op.extra).kind != BarrierKind::arrive;
        if (op.flow == Flow::mbarrier_wait || op.flow == Flow::cluster_wait) return true;
        return warps_ && op.flow == Flow::warp_sync && program_.debug[op.index].text.starts_with("bar.warp");
    }

    void enter(uint32_t at) {
        if (at >= seen_.size() || seen_[at]) return;
        seen_[at] = true;
        open_.push_back(at);
    }

    // The entry of the function that has the op: the last one before it.
    uint32_t function_of(uint32_t at) const {
        uint32_t found = 0;
        for (uint32_t f = 0; f < program_.functions.size(); ++f) {
            const uint32_t entry = program_.functions[f].entry;
            if (entry <= at && entry >= program_.functions[found].entry) found = f;
        }
        return found;
    }

    void leave(uint32_t at) {
        const Op &op = program_.ops[at];
        const bool whole = op.guard == kNoSlot;  // all lanes do it
        switch (op.flow) {
            case Flow::branch:
            case Flow::jump:
                enter(op.target);
                if (!whole) enter(at + 1);
                break;
            case Flow::indirect:
                for (uint32_t i = 0; i < op.list_count; ++i) enter(program_.operand_list[op.list + i]);
                if (!whole) enter(at + 1);
                break;
            case Flow::call:
                if (op.a == kNoSlot) {
                    enter(program_.functions[op.target].entry);
                } else {
                    enter(at + 1);
                }
                if (!whole) enter(at + 1);
                break;
            case Flow::ret: {
                const uint32_t function = function_of(at);
                for (const Op &call : program_.ops)
                    if (function && call.flow == Flow::call && call.a == kNoSlot && call.target == function)
                        enter(call.index + 1);
                if (!whole) enter(at + 1);
                break;
            }
            case Flow::exit:
                if (!whole) enter(at + 1);
                break;
            default:
                enter(at + 1);
        }
    }

    const Program &program_;
    bool warps_;
    std::vector<bool> seen_;
    std::vector<uint32_t> open_;
};

}  // namespace

bool leads_freely(const Program &program, uint32_t from, uint32_t to, bool warps) {
    return Ways(program, warps).lead(from, to);
}

}  // namespace warpsim
