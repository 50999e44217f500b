#include "lower/registers.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/op.h"
#include "lower/instruction_table.h"

namespace warpsim {

namespace {

constexpr uint32_t kNowhere = 0xffffffffu;
// Liveness beyond this many bits would only be asked for by a hostile program: it gets one slot for each register.
constexpr uint64_t kMostLivenessBits = 1ull << 31;

struct Interval {
    uint32_t start = kNowhere, end = 0;  // positions of instructions in layout order, both included
    void cover(uint32_t position) {
        start = std::min(start, position);
        end = std::max(end, position);
    }
};

// Registers that are live across a block's edge get a bit; all others live inside one block.
class Liveness {
  public:
    Liveness(const ptx::Function &function, const Layout &layout)
        : function_(function), layout_(layout), intervals(function.registers.size()) {}

    // False where the sets would be too large.
    bool run() {
        number_registers();
        words_ = (global_.size() + 63) / 64;
        const uint64_t blocks = layout_.blocks.size();
        if (words_ * 64 * blocks > kMostLivenessBits) return false;
        upward_.assign(words_ * blocks, 0);
        killed_.assign(words_ * blocks, 0);
        live_in_.assign(words_ * blocks, 0);
        collect();
        solve();
        cover();
        return true;
    }

    std::vector<uint32_t> live_at_entry() const {
        std::vector<uint32_t> registers;
        for (uint64_t w = 0; w < words_; ++w) {
            for (uint64_t in = live_in_[w]; in; in &= in - 1)
                registers.push_back(global_[w * 64 + unsigned(__builtin_ctzll(in))]);
        }
        return registers;
    }

  private:
    template <class F>
    void for_each_block(F f) {
        uint32_t position = 0;
        for (uint32_t b : layout_.order) {
            const BasicBlock &block = layout_.blocks[b];
            f(b, block, position);
            position += block.last - block.first;
        }
    }

    void number_registers() {
        const size_t count = function_.registers.size();
        std::vector<uint32_t> home(count, kNowhere), written_in(count, kNowhere);
        bit_.assign(count, kNowhere);
        for_each_block([&](uint32_t b, const BasicBlock &block, uint32_t) {
            for (uint32_t i = block.first; i < block.last; ++i) {
                uses_.clear();
                register_uses(function_.body[i], uses_);
                for (const RegisterUse &use : uses_) {
                    if (home[use.reg] == kNowhere) home[use.reg] = b;
                    const bool local = home[use.reg] == b && (use.written || written_in[use.reg] == b);
                    if (use.written && use.whole) written_in[use.reg] = b;
                    if (!local && bit_[use.reg] == kNowhere) {
                        bit_[use.reg] = uint32_t(global_.size());
                        global_.push_back(use.reg);
                    }
                }
            }
        });
    }

    void collect() {
        for_each_block([&](uint32_t b, const BasicBlock &block, uint32_t) {
            uint64_t *up = upward_.data() + b * words_, *kill = killed_.data() + b * words_;
            for (uint32_t i = block.first; i < block.last; ++i) {
                uses_.clear();
                register_uses(function_.body[i], uses_);
                for (const RegisterUse &use : uses_) {  // reads before writes, see below
                    const uint32_t bit = bit_[use.reg];
                    if (bit == kNowhere || use.written) continue;
                    if (!(kill[bit / 64] >> (bit % 64) & 1)) up[bit / 64] |= 1ull << (bit % 64);
                }
                for (const RegisterUse &use : uses_) {
                    const uint32_t bit = bit_[use.reg];
                    if (bit != kNowhere && use.written && use.whole) kill[bit / 64] |= 1ull << (bit % 64);
                }
            }
        });
    }

    uint64_t live_out(uint32_t b, uint64_t word) const {
        uint64_t out = 0;
        for (uint32_t s : layout_.blocks[b].successors) out |= live_in_[s * words_ + word];
        return out;
    }

    void solve() {
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = layout_.order.size(); i-- > 0;) {
                const uint32_t b = layout_.order[i];
                for (uint64_t w = 0; w < words_; ++w) {
                    const uint64_t in = upward_[b * words_ + w] | (live_out(b, w) & ~killed_[b * words_ + w]);
                    changed |= in != live_in_[b * words_ + w];
                    live_in_[b * words_ + w] = in;
                }
            }
        }
    }

    void cover() {
        for_each_block([&](uint32_t b, const BasicBlock &block, uint32_t position) {
            for (uint32_t i = block.first; i < block.last; ++i) {
                uses_.clear();
                register_uses(function_.body[i], uses_);
                for (const RegisterUse &use : uses_) intervals[use.reg].cover(position + i - block.first);
            }
            if (block.first == block.last) return;
            for (uint64_t w = 0; w < words_; ++w) {
                for (uint64_t in = live_in_[b * words_ + w]; in; in &= in - 1) {
                    intervals[global_[w * 64 + unsigned(__builtin_ctzll(in))]].cover(position);
                }
                for (uint64_t out = live_out(b, w); out; out &= out - 1) {
                    intervals[global_[w * 64 + unsigned(__builtin_ctzll(out))]].cover(position + block.last -
                                                                                      block.first - 1);
                }
            }
        });
    }

    const ptx::Function &function_;
    const Layout &layout_;
    std::vector<RegisterUse> uses_;
    std::vector<uint32_t> bit_, global_;  // register -> bit, bit -> register
    uint64_t words_ = 0;
    std::vector<uint64_t> upward_, killed_, live_in_;

  public:
    std::vector<Interval> intervals;  // by register
};

}  // namespace

uint32_t slot_bytes(unsigned type_bytes) {
    if (type_bytes == 0) return sizeof(uint32_t);
    return std::max(64u, type_bytes * kLanes);
}

Allocation allocate_registers(const ptx::Function &function, const Layout &layout) {
    Allocation result;
    const size_t count = function.registers.size();
    result.slot.assign(count, kNoSlot);
    Liveness liveness(function, layout);
    if (!liveness.run()) {
        for (Interval &interval : liveness.intervals) interval = {0, kNowhere - 1};
        result.reads_before_writes = true;
    } else {
        result.unwritten = liveness.live_at_entry();
        result.reads_before_writes = !result.unwritten.empty();
    }

    std::vector<uint32_t> by_start;
    for (uint32_t r = 0; r < count; ++r) {
        if (liveness.intervals[r].start != kNowhere) by_start.push_back(r);
    }
    std::sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
        const uint32_t sa = liveness.intervals[a].start, sb = liveness.intervals[b].start;
        return sa != sb ? sa < sb : a < b;
    });

    // One pool for each size: predicates, 64, 128, 256, 512 bytes, and vector registers of any size. Slots are numbered
    // in their pool first, and the pools laid one after the other at the end. The last one freed is used first: it is
    // the likeliest to be in the first-level cache.
    struct Active {
        uint32_t end, reg;
    };
    struct Pool {
        uint32_t bytes;
        uint32_t size = 0;
        std::vector<uint32_t> free;
    };
    std::vector<Pool> pools;
    for (uint32_t bytes : {4u, 64u, 128u, 256u, 512u}) pools.push_back({bytes, 0, {}});
    const auto bytes_of = [&](uint32_t r) {
        const ptx::Register &reg = function.registers[r];
        return slot_bytes(ptx::type_bytes(reg.type)) * uint32_t(std::max(1, reg.vector));
    };
    const auto pool_of = [&](uint32_t r) {
        const uint32_t bytes = bytes_of(r);
        size_t p = 0;
        while (p < pools.size() && pools[p].bytes != bytes) ++p;
        if (p == pools.size()) pools.push_back({bytes, 0, {}});
        return p;
    };
    const auto later = [](const Active &a, const Active &b) { return a.end != b.end ? a.end > b.end : a.reg > b.reg; };
    std::vector<Active> active;  // a heap: the first to end on top
    std::vector<uint32_t> number(count, kNowhere);
    uint32_t live_words = 0;
    for (uint32_t r : by_start) {
        const Interval interval = liveness.intervals[r];
        while (!active.empty() && active.front().end < interval.start) {
            const uint32_t done = active.front().reg;
            std::pop_heap(active.begin(), active.end(), later);
            active.pop_back();
            pools[pool_of(done)].free.push_back(number[done]);
            live_words -= bytes_of(done) / 128;
        }
        Pool &pool = pools[pool_of(r)];
        if (pool.free.empty()) {
            number[r] = pool.size++;
        } else {
            number[r] = pool.free.back();
            pool.free.pop_back();
        }
        live_words += bytes_of(r) / 128;
        result.most_live_words = std::max(result.most_live_words, live_words);
        active.push_back({interval.end, r});
        std::push_heap(active.begin(), active.end(), later);
    }
    uint32_t offset = 0;
    std::vector<uint32_t> base(pools.size());
    for (size_t p = 0; p < pools.size(); ++p) {
        base[p] = offset;
        offset += (pools[p].bytes * pools[p].size + 63) / 64 * 64;
    }
    for (uint32_t r : by_start) {
        const size_t p = pool_of(r);
        result.slot[r] = base[p] + pools[p].bytes * number[r];
    }
    result.bytes = offset;
    return result;
}

namespace {

using ptx::Operand;

void visit(const Operand &operand, bool written, bool whole, std::vector<RegisterUse> &out) {
    switch (operand.kind) {
        case Operand::Kind::reg:
            if (written) {
                const bool all = whole && operand.component < 0;
                if (!all) out.push_back({operand.index, false, false});
                out.push_back({operand.index, true, all});
            } else {
                out.push_back({operand.index, false, false});
            }
            break;
        case Operand::Kind::address:
            written = false;
            break;
        default:
            break;
    }
    for (const Operand &element : operand.elements) visit(element, written, whole, out);
}

}  // namespace

void register_uses(const ptx::Instruction &in, std::vector<RegisterUse> &out) {
    const size_t start = out.size();
    const bool whole = in.guard < 0;
    if (in.guard >= 0) out.push_back({uint32_t(in.guard), false, false});
    const bool writes = writes_first_operand(in);
    for (size_t i = 0; i < in.operands.size(); ++i) {
        // wgmma adds to its first operand.
        visit(in.operands[i], i == 0 && writes, whole && in.opcode != "wgmma", out);
    }
    std::stable_partition(out.begin() + std::ptrdiff_t(start), out.end(),
                          [](const RegisterUse &use) { return !use.written; });
}

}  // namespace warpsim
