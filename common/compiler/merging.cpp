#include "merging.h"
#include "format.h"

#include <algorithm>
#include <tuple>

namespace compiler {

using machine::Access, machine::Block, machine::Effect, machine::Operation;

namespace {

// Accesses of one kind without anything between them that they must not be moved across.
class Window {
  public:
    Window(Block &block, std::vector<char> &gone) : block_(block), gone_(gone) {}

    void add(size_t at) { members_.push_back(at); }
    bool takes(const Access &access) const {
        const Access *first = members_.empty() ? nullptr : &block_.operations[members_[0]].access;
        return !first || (first->place == access.place && first->base == access.base);
    }

    void close() {
        // By place, and of one place by offset.
        std::stable_sort(members_.begin(), members_.end(), [&](size_t a, size_t b) {
            const Access &one = block_.operations[a].access, &other = block_.operations[b].access;
            return std::tie(one.place, one.base, one.bits, one.offset) <
                   std::tie(other.place, other.base, other.bits, other.offset);
        });
        for (size_t first = 0; first < members_.size();) {
            size_t count = 4;
            while (count > 1 && !joins(first, count)) count /= 2;
            if (count > 1) join(first, count);
            first += count;
        }
        members_.clear();
    }

  private:
    bool joins(size_t first, size_t count) const {
        if (first + count > members_.size()) return false;
        const Access &begin = block_.operations[members_[first]].access;
        const uint64_t bytes = begin.bits / 8 * count;
        if (bytes > 16 || begin.alignment < bytes) return false;
        for (size_t i = 1; i < count; ++i) {
            const Access &one = block_.operations[members_[first + i]].access;
            if (one.place != begin.place || one.base != begin.base || one.bits != begin.bits) return false;
            if (one.offset != begin.offset + static_cast<int64_t>(i * begin.bits / 8)) return false;
        }
        return true;
    }

    // Loads where the first of them is, stores where the last is.
    void join(size_t first, size_t count) {
        std::string elements;
        for (size_t i = 0; i < count; ++i)
            elements += (i ? ", " : "") + block_.operations[members_[first + i]].access.element;
        const auto begin = members_.begin() + first;
        const bool loads = block_.operations[*begin].effect == Effect::load;
        const size_t at = loads ? *std::min_element(begin, begin + count) : *std::max_element(begin, begin + count);
        const Access access = block_.operations[*begin].access;
        const std::string place = format("[{}{}{}]", access.base, access.offset > 0 ? "+" : "",
                                         access.offset ? std::to_string(access.offset) : "");
        const std::string name = format("{}.v{}.b{} ", access.place, count, access.bits);
        Operation made =
            machine::operation(loads ? name + "{" + elements + "}, " + place : name + place + ", {" + elements + "}");
        made.effect = block_.operations[at].effect;
        made.debug = block_.operations[at].debug;
        for (size_t i = 0; i < count; ++i) gone_[members_[first + i]] = true;
        gone_[at] = false;
        block_.operations[at] = std::move(made);
    }

    Block &block_;
    std::vector<char> &gone_;
    std::vector<size_t> members_;
};

void merge_in(Block &block) {
    std::vector<char> gone(block.operations.size());
    Window loads(block, gone), stores(block, gone);
    for (size_t at = 0; at < block.operations.size(); ++at) {
        const Operation &one = block.operations[at];
        const bool mergeable = one.access.bits >= 8;
        if (one.effect != Effect::load && one.effect != Effect::none) loads.close();
        if (one.effect != Effect::store && one.effect != Effect::none) stores.close();
        if (one.effect == Effect::load && mergeable) loads.add(at);
        if (one.effect == Effect::store) {
            if (!mergeable || !stores.takes(one.access)) stores.close();
            if (mergeable) stores.add(at);
        }
    }
    loads.close(), stores.close();
    size_t kept = 0;
    for (size_t at = 0; at < gone.size(); ++at)
        if (!gone[at]) {
            if (kept != at) block.operations[kept] = std::move(block.operations[at]);
            ++kept;
        }
    block.operations.resize(kept);
}

}  // namespace

void merge_accesses(machine::Function &function) {
    for (Block &block : function.blocks) merge_in(block);
}

}  // namespace compiler
