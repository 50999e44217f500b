#include "runtime/stream_clocks.h"

#include <algorithm>

namespace warpsim::rt {

uint64_t Clock::at(uint32_t lane) const {
    const auto found =
        std::lower_bound(steps_.begin(), steps_.end(), lane, [](const auto &s, uint32_t l) { return s.first < l; });
    return found != steps_.end() && found->first == lane ? found->second : 0;
}

void Clock::advance(uint32_t lane, uint64_t step) {
    const auto found =
        std::lower_bound(steps_.begin(), steps_.end(), lane, [](const auto &s, uint32_t l) { return s.first < l; });
    if (found != steps_.end() && found->first == lane) {
        found->second = std::max(found->second, step);
    } else {
        steps_.insert(found, {lane, step});
    }
}

void Clock::join(const Clock &other) {
    for (const auto &[lane, step] : other.steps_) advance(lane, step);
}

}  // namespace warpsim::rt
