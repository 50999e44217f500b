// Random kernels on the host: every statement for one thread after the other, then the next statement.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "kernels.h"

namespace fuzz {
namespace {

struct Thread {
    std::array<uint32_t, kVariables> v{};
    std::array<uint64_t, kWide> w{};
    std::array<uint8_t, kRow> local{};
};

using Mask = std::vector<bool>;  // by thread of the block

class HostBlock {
  public:
    HostBlock(const Kernel &kernel, Memory &memory, unsigned index)
        : kernel_(kernel), memory_(memory), index_(index), threads_(kernel.block) {}

    void run() {
        for (unsigned t = 0; t < threads_.size(); ++t) {
            Thread &thread = threads_[t];
            std::copy_n(&memory_.inputs[size_t{global(t)} * kInputs], kVariables, thread.v.begin());
            for (unsigned i = 0; i < kWide; ++i) thread.w[i] = uint64_t{thread.v[i + 1]} << 32 | thread.v[0];
        }
        Mask mask(threads_.size(), true);
        statements(kernel_.body, mask);
        store_all(mask);
    }

  private:
    unsigned global(unsigned t) const { return index_ * kernel_.block + t; }

    static uint32_t of(const Operand &operand, const Thread &thread) {
        return operand.immediate ? operand.value : thread.v[operand.value];
    }

    static bool holds(const Statement &s, const Thread &thread) {
        return kComparisons[s.compare].holds(of(s.x, thread), of(s.y, thread));
    }

    template <class F>
    void each(const Mask &mask, F f) {
        for (unsigned t = 0; t < threads_.size(); ++t)
            if (mask[t]) f(t, threads_[t]);
    }

    // The results of all threads are computed before any is kept.
    template <class F>
    void assign(const Statement &s, const Mask &mask, F value) {
        std::vector<uint32_t> values(threads_.size());
        each(mask, [&](unsigned t, Thread &thread) { values[t] = value(t, thread); });
        each(mask, [&](unsigned t, Thread &thread) { thread.v[s.a] = values[t]; });
    }

    void statements(const std::vector<Statement> &list, Mask &mask) {
        for (const Statement &s : list) statement(s, mask);
    }

    Mask those(const Mask &mask, const std::function<bool(const Thread &)> &condition) {
        Mask result(mask.size());
        each(mask, [&](unsigned t, const Thread &thread) { result[t] = condition(thread); });
        return result;
    }

    static uint32_t compute(const Statement &s, const Thread &thread) {
        return kOperations[s.operation].compute(of(s.x, thread), of(s.y, thread), of(s.z, thread));
    }

    void branch(const Statement &s, const Mask &mask) {
        Mask taken = those(mask, [&](const Thread &thread) { return s.flag ? index_ == 1 : holds(s, thread); });
        Mask rest(mask.size());
        for (size_t t = 0; t < mask.size(); ++t) rest[t] = mask[t] && !taken[t];
        statements(s.body, taken);
        statements(s.other, rest);
    }

    void loop(const Statement &s, const Mask &mask) {
        std::vector<uint32_t> left(threads_.size());
        each(mask, [&](unsigned t, const Thread &thread) { left[t] = s.flag ? s.count : thread.v[s.a] & s.count; });
        for (;;) {
            Mask here(mask.size());
            bool any = false;
            for (size_t t = 0; t < mask.size(); ++t) {
                here[t] = mask[t] && left[t]-- > 0;
                if (!here[t]) left[t] = 0;
                any = any || here[t];
            }
            if (!any) return;
            statements(s.body, here);
        }
    }

    uint8_t *row_place(const Statement &s, unsigned t, Thread &thread) {
        const bool is_global = s.kind % 4 == 1 || s.kind % 4 == 2;
        uint8_t *row = is_global ? &memory_.rows[size_t{global(t)} * kRow] : thread.local.data();
        return row + (of(s.z, thread) & (kRow / s.count - 1)) * s.count;
    }

    void row_store(const Statement &s, unsigned t, Thread &thread) {
        const uint32_t x = of(s.x, thread), y = of(s.y, thread);
        const uint32_t words[] = {x, y, y, x};
        std::memcpy(row_place(s, t, thread), words, s.count);
    }

    uint32_t row_load(const Statement &s, unsigned t, Thread &thread) {
        uint32_t words[4] = {};
        std::memcpy(words, row_place(s, t, thread), s.count);
        if (s.count == 16) return (words[0] - words[1]) ^ (words[2] - words[3]);
        if (s.count == 8) return words[0] - words[1];
        const unsigned unused = 32 - 8 * s.count;
        return s.flag ? static_cast<uint32_t>(static_cast<int32_t>(words[0] << unused) >> unused) : words[0];
    }

    void bins(const Statement &s, const Mask &mask) {
        std::array<uint32_t, kBins> sums{};
        each(mask, [&](unsigned, const Thread &thread) { sums[of(s.x, thread) & 15] += of(s.y, thread); });
        for (unsigned i = 0; s.flag && i < kBins; ++i) memory_.bins[i] += sums[i];
        assign(s, mask, [&](unsigned, const Thread &thread) { return sums[of(s.z, thread) & 15]; });
    }

    // The manual's own words on shfl.sync.
    uint32_t shuffle(const Statement &s, unsigned t) {
        const uint32_t lane = t % 32, b = of(s.y, threads_[t]) & 31, segment = (32 - s.count) & 31;
        const uint32_t clamp = s.kind == 0 ? 0 : 31;
        const uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        uint32_t from = 0;
        bool inside = false;
        if (s.kind == 0)
            from = lane - b, inside = static_cast<int32_t>(from) >= static_cast<int32_t>(most);
        else if (s.kind == 1)
            from = lane + b, inside = from <= most;
        else if (s.kind == 2)
            from = lane ^ b, inside = from <= most;
        else
            from = least | (b & ~segment), inside = from <= most;
        const uint32_t value = of(s.x, threads_[t - lane + (inside ? from : lane)]);
        return inside ? value : value ^ of(s.z, threads_[t]);
    }

    struct Warp {
        unsigned first, lanes;
    };
    Warp warp_of(unsigned t) const { return {t / 32 * 32, std::min(32u, kernel_.block - t / 32 * 32)}; }

    uint32_t ballot(unsigned t, const std::function<bool(const Thread &)> &condition) {
        const Warp warp = warp_of(t);
        uint32_t lanes = 0;
        for (unsigned i = 0; i < warp.lanes; ++i) lanes |= uint32_t{condition(threads_[warp.first + i])} << i;
        return lanes;
    }

    uint32_t reduce(const Statement &s, unsigned t) {
        const Warp warp = warp_of(t);
        uint32_t result = of(s.x, threads_[warp.first]);
        for (unsigned i = 1; i < warp.lanes; ++i) {
            const uint32_t x = of(s.x, threads_[warp.first + i]);
            const auto larger = std::max(static_cast<int32_t>(result), static_cast<int32_t>(x));
            const uint32_t results[] = {result + x, std::min(result, x), static_cast<uint32_t>(larger),
                                        result & x, result | x,          result ^ x};
            result = results[s.kind - 4];
        }
        return result;
    }

    uint32_t vote(const Statement &s, unsigned t, const Thread &thread) {
        if (s.kind == 10) return ballot(t, [&](const Thread &other) { return of(s.x, other) == of(s.x, thread); });
        if (s.kind >= 4) return reduce(s, t);
        const uint32_t lanes = ballot(t, [&](const Thread &other) { return holds(s, other); });
        const uint32_t all = ballot(t, [](const Thread &) { return true; });
        const bool results[] = {lanes == all, lanes != 0, lanes == all || lanes == 0};
        return s.kind == 0 ? lanes : of(results[s.kind - 1] ? s.y : s.z, thread);
    }

    void leader(const Statement &s, const Mask &mask) {
        std::vector<Thread> before = threads_;
        each(mask, [&](unsigned t, Thread &thread) {
            if (!holds(s, before[t])) return;
            const Warp warp = warp_of(t);
            unsigned count = 0, first = 32;
            for (unsigned i = 0; i < warp.lanes; ++i) {
                if (!holds(s, before[warp.first + i])) continue;
                ++count, first = std::min(first, i);
            }
            thread.v[s.a] = of(s.z, before[warp.first + first]);
            thread.v[s.b] = count;
        });
    }

    void barrier(const Statement &s, const Mask &mask) {
        if (s.kind == 0 || s.kind == 3) return;
        uint32_t count = 0, all = 0;
        each(mask, [&](unsigned, const Thread &thread) { count += holds(s, thread), ++all; });
        assign(s, mask, [&](unsigned, const Thread &) { return s.kind == 1 ? count : uint32_t{count == all}; });
    }

    // Of the other thread of that block.
    uint32_t input(const Statement &s, unsigned block, unsigned t) const {
        const unsigned other = (t * s.count + s.operation) % kernel_.block;
        return memory_.inputs[(size_t{block} * kernel_.block + other) * kInputs + s.kind];
    }

    uint32_t call(const Statement &s, const Thread &caller) {
        Thread callee;
        callee.v[0] = of(s.x, caller), callee.v[1] = of(s.y, caller);
        for (const Statement &inner : kernel_.functions[s.kind]) callee.v[inner.a] = compute(inner, callee);
        return callee.v[0];
    }

    void store_all(const Mask &mask) {
        each(mask, [&](unsigned t, const Thread &thread) {
            std::copy(thread.v.begin(), thread.v.end(), &memory_.out[size_t{global(t)} * kVariables]);
        });
    }

    void statement(const Statement &s, Mask &mask) {
        switch (s.what) {
            case Do::compute:
                return assign(s, mask, [&](unsigned, const Thread &thread) { return compute(s, thread); });
            case Do::widen:
                return each(mask, [&](unsigned, Thread &thread) {
                    thread.w[s.a] =
                        kWideOperations[s.operation].compute(of(s.x, thread), of(s.y, thread), thread.w[s.b]);
                });
            case Do::narrow:
                return assign(s, mask, [&](unsigned, const Thread &thread) {
                    return static_cast<uint32_t>(thread.w[s.b] ^ thread.w[s.b] >> 32);
                });
            case Do::select:
                return assign(s, mask, [&](unsigned, const Thread &thread) {
                    return holds(s, thread) ? of(s.z, thread) : thread.v[s.a];
                });
            case Do::branch:
                return branch(s, mask);
            case Do::loop:
                return loop(s, mask);
            case Do::row_store:
                return each(mask, [&](unsigned t, Thread &thread) { row_store(s, t, thread); });
            case Do::row_load:
                return assign(s, mask, [&](unsigned t, Thread &thread) { return row_load(s, t, thread); });
            case Do::exchange:
                return assign(s, mask, [&](unsigned t, const Thread &) {
                    return of(s.x, threads_[(t * s.count + s.operation) % kernel_.block]);
                });
            case Do::warp_share:
                return assign(s, mask, [&](unsigned t, const Thread &) {
                    return of(s.x, threads_[(t ^ s.count) < kernel_.block ? t ^ s.count : t]);
                });
            case Do::bins:
                return bins(s, mask);
            case Do::global_bins:
                return each(mask, [&](unsigned, const Thread &thread) {
                    memory_.bins[of(s.x, thread) & 15] += of(s.y, thread);
                });
            case Do::shuffle:
                return assign(s, mask, [&](unsigned t, const Thread &) { return shuffle(s, t); });
            case Do::vote:
                return assign(s, mask, [&](unsigned t, const Thread &thread) { return vote(s, t, thread); });
            case Do::leader:
                return leader(s, mask);
            case Do::barrier:
                return barrier(s, mask);
            case Do::call:
                return assign(s, mask, [&](unsigned, const Thread &thread) { return call(s, thread); });
            case Do::bulk:
                return assign(s, mask, [&](unsigned t, const Thread &) { return input(s, index_, t); });
            case Do::peer:
                return assign(s, mask, [&](unsigned t, const Thread &) { return input(s, index_ ^ 1, t); });
            case Do::leave: {
                const Mask gone = those(mask, [&](const Thread &thread) { return holds(s, thread); });
                store_all(gone);
                for (size_t t = 0; t < mask.size(); ++t) mask[t] = mask[t] && !gone[t];
            }
        }
    }

    const Kernel &kernel_;
    Memory &memory_;
    unsigned index_;
    std::vector<Thread> threads_;
};

}  // namespace

void run_on_host(const Kernel &kernel, Memory &memory) {
    for (unsigned block = 0; block < kernel.grid; ++block) HostBlock(kernel, memory, block).run();
}

}  // namespace fuzz
