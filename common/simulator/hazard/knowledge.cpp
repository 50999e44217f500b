#include "hazard/knowledge.h"

#include <algorithm>

namespace warpsim {

namespace {

Reach joined(const Reach &a, const Reach &b) {
    if (a.stamps == b.stamps || a.era > b.era) return a;
    if (b.era > a.era) return b;
    const bool a_longer = a.stamps->size() >= b.stamps->size();
    auto sum = std::make_shared<Clocks::Vector>(a_longer ? *a.stamps : *b.stamps);
    const Clocks::Vector &other = a_longer ? *b.stamps : *a.stamps;
    for (size_t i = 0; i < other.size(); ++i) (*sum)[i] = std::max((*sum)[i], other[i]);
    return {a.team, a.era, std::move(sum)};
}

}  // namespace

Knowledge joined(const Knowledge &a, const Knowledge &b) {
    if (!a || a == b) return b;
    if (!b) return a;
    auto sum = std::make_shared<std::vector<Reach>>();
    sum->reserve(a->size() + b->size());
    auto i = a->begin(), j = b->begin();
    while (i != a->end() || j != b->end()) {
        if (j == b->end() || (i != a->end() && i->team < j->team)) {
            sum->push_back(*i++);
        } else if (i == a->end() || j->team < i->team) {
            sum->push_back(*j++);
        } else {
            sum->push_back(joined(*i++, *j++));
        }
    }
    return sum;
}

const Reach *reach_of(const Knowledge &knowledge, uint64_t team) {
    if (!knowledge) return nullptr;
    const auto found = std::lower_bound(knowledge->begin(), knowledge->end(), team,
                                        [](const Reach &reach, uint64_t wanted) { return reach.team < wanted; });
    return found != knowledge->end() && found->team == team ? &*found : nullptr;
}

bool knows(const Knowledge &knowledge, uint64_t team, uint32_t era, unsigned thread, uint32_t stamp) {
    const Reach *const found = reach_of(knowledge, team);
    if (!found) return false;
    if (found->era != era) return era < found->era;
    return thread < found->stamps->size() && stamp <= (*found->stamps)[thread];
}

}  // namespace warpsim
