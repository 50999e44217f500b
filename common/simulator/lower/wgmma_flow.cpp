#include "lower/wgmma_flow.h"

#include <algorithm>
#include <tuple>

#include "lower/registers.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr uint32_t kFenced = 0xfffffffeu;
constexpr uint8_t kLanded = 255, kOldest = 9;  // more groups than a wait can leave in flight
constexpr unsigned kMostRounds = 50;
constexpr uint64_t kMostMarks = 1ull << 25;  // hostile programs only: they go without

struct Mark {
    uint8_t age = kLanded;  // groups committed since, of the wgmma that uses it last
    bool is_a = false;
    uint32_t wgmma = 0;
    uint32_t accessed = kFenced;  // the last access without a fence behind it

    // What may be, of two paths: the younger wgmma, and the access.
    bool merge(const Mark &other) {
        const Mark before = *this;
        if (std::tie(other.age, other.wgmma) < std::tie(age, wgmma)) {
            age = other.age;
            is_a = other.is_a;
            wgmma = other.wgmma;
        }
        if (accessed == kFenced || (other.accessed != kFenced && other.accessed < accessed)) accessed = other.accessed;
        return std::tie(before.age, before.wgmma, before.accessed) != std::tie(age, wgmma, accessed);
    }
};
using State = std::vector<Mark>;

bool is_wgmma(const Instruction &in, const char *what) {
    return in.opcode == "wgmma" && in.has(what);
}

bool is_plain_move(const Instruction &in) {
    return in.opcode == "mov" && in.operands.size() == 2 && in.operands[0].kind == Operand::Kind::reg;
}

template <class F>
void for_each_register(const Operand &operand, F f) {
    if (operand.kind == Operand::Kind::reg) f(operand.index);
    if (operand.kind != Operand::Kind::vector) return;
    for (const Operand &element : operand.elements)
        if (element.kind == Operand::Kind::reg) f(element.index);
}

class Walk {
  public:
    Walk(const ptx::Function &function, std::unordered_map<uint32_t, WgmmaFlow::Finding> *findings)
        : function_(function), findings_(findings) {}

    void step(State &state, uint32_t index) {
        const Instruction &in = function_.body[index];
        if (in.opcode == "wgmma") return wgmma(state, in, index);
        if (is_plain_move(in)) return move(state, in, index);
        uses_.clear();
        register_uses(in, uses_);
        for (const RegisterUse &use : uses_) {
            Mark &mark = state[use.reg];
            if (mark.age != kLanded) report(index, {mark.wgmma, use.reg, false, use.written, mark.is_a});
            if (use.written) mark.age = kLanded;
            mark.accessed = index;
        }
    }

  private:
    void wgmma(State &state, const Instruction &in, uint32_t index) {
        if (in.has("fence")) {
            for (Mark &mark : state) mark.accessed = kFenced;
        } else if (in.has("commit_group")) {
            for (Mark &mark : state)
                if (mark.age < kOldest) ++mark.age;
        } else if (in.has("wait_group") && !in.operands.empty()) {
            for (Mark &mark : state)
                if (mark.age > in.operands[0].integer) mark.age = kLanded;
        } else if (in.has("mma_async") && in.operands.size() > 1) {
            for (unsigned operand = 0; operand < 2; ++operand) {
                const bool is_a = operand == 1;
                if (is_a && in.operands[1].kind != Operand::Kind::vector) continue;
                for_each_register(in.operands[operand], [&](uint32_t reg) {
                    Mark &mark = state[reg];
                    if (mark.accessed != kFenced)
                        report(index, {mark.accessed, reg, true, false, is_a});
                    else if (mark.age != kLanded && mark.is_a != is_a)
                        report(index, {mark.wgmma, reg, false, !is_a, mark.is_a});
                    mark = {0, is_a, index, kFenced};
                });
            }
        }
    }

    void move(State &state, const Instruction &in, uint32_t index) {
        Mark &to = state[in.operands[0].index];
        const bool copies = in.operands[1].kind == Operand::Kind::reg;
        const Mark from = copies ? state[in.operands[1].index] : Mark{kLanded, false, 0, to.accessed};
        if (to.age != kLanded && from.age == kLanded)
            report(index, {to.wgmma, in.operands[0].index, false, true, to.is_a});
        to = from;
    }

    void report(uint32_t index, WgmmaFlow::Finding finding) {
        if (findings_) findings_->try_emplace(index, finding);
    }

    const ptx::Function &function_;
    std::unordered_map<uint32_t, WgmmaFlow::Finding> *findings_;
    std::vector<RegisterUse> uses_;
};

}  // namespace

void WgmmaFlow::run(const ptx::Function &function, const Layout &layout) {
    const bool any = std::any_of(function.body.begin(), function.body.end(),
                                 [](const Instruction &in) { return is_wgmma(in, "mma_async"); });
    if (!any || function.registers.size() * layout.blocks.size() > kMostMarks) return;
    std::vector<State> before(layout.blocks.size());
    const auto walk = [&](uint32_t block, std::unordered_map<uint32_t, Finding> *findings) {
        State state = before[block];
        Walk steps(function, findings);
        for (uint32_t i = layout.blocks[block].first; i < layout.blocks[block].last; ++i) steps.step(state, i);
        return state;
    };
    before[0].assign(function.registers.size(), Mark{kLanded, false, 0, kStart});
    std::vector<bool> changed(layout.blocks.size(), false);
    changed[0] = true;
    for (unsigned round = 0, again = true; again && round < kMostRounds; ++round) {
        again = false;
        for (uint32_t block : layout.order) {
            if (!changed[block]) continue;
            changed[block] = false;
            const State after = walk(block, nullptr);
            for (uint32_t next : layout.blocks[block].successors) {
                bool differs = before[next].empty();
                if (differs) {
                    before[next] = after;
                } else {
                    for (size_t r = 0; r < after.size(); ++r) differs |= before[next][r].merge(after[r]);
                }
                changed[next] = changed[next] || differs;
                again = again || differs;
            }
        }
    }
    for (uint32_t block : layout.order)
        if (!before[block].empty()) walk(block, &findings_);
}

const WgmmaFlow::Finding *WgmmaFlow::find(uint32_t instruction) const {
    const auto found = findings_.find(instruction);
    return found == findings_.end() ? nullptr : &found->second;
}

}  // namespace warpsim
