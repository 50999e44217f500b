#include "hazard/clocks.h"

#include <algorithm>
#include <bit>

// A barrier that all threads of the block reach is by far the most frequent event and costs a few stores: everyone_
// moves up (of a cluster's threads it does not: a block's barriers are those of whole warps there). Barriers of whole
// warps work on known_. All else goes by thread: a vector of stamps, one for each thread,
// shared by all who know the same. The memory model is that of PTX, bent towards correct programs: what is released at
// an address is never forgotten there (a later relaxed write by another thread would end it in the model), and what a
// thread learnt after a fence is released by that fence as well. Neither makes an alarm of a program that has no race.

namespace warpsim {

void Clocks::start_stamps() {
    for (unsigned w = 0; w < warps_; ++w) stamp_[w] = ordered_below_[w] = now_;
    known_.assign(size_t(warps_) * (warps_ + blocks_), 0);
}

void Clocks::start(unsigned blocks, unsigned warps_of_each) {
    blocks_ = blocks;
    per_block_ = warps_of_each;
    warps_ = blocks * warps_of_each;
    base_ = everyone_ = ++now_;
    start_ = ++now_;
    if (blocks > 1) ++now_;  // what they do comes after their start
    all_started_ = blocks == 1;
    set_threads(per_block_ * kLanes);
    std::fill_n(exited_.begin(), warps_, 0);
    start_stamps();
    forget_details();
    more_.resize(warps_ * kLanes);
    seen_.resize(warps_ * kLanes);
    fenced_.assign(warps_ * kLanes, 0);
    covered_.assign(blocks > 1 ? warps_ * kLanes : 0, nullptr);
}

void Clocks::set_threads(unsigned threads) {
    for (unsigned w = 0; w < per_block_; ++w) {
        const unsigned lanes = threads > w * kLanes ? std::min(threads - w * kLanes, kLanes) : 0;
        for (unsigned block = 0; block < blocks_; ++block)
            exists_[block * per_block_ + w] = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    }
}

void Clocks::restart() {
    base_ = everyone_ = 1;
    now_ = 2;
    all_started_ = true;
    ++era_;
    start_stamps();
    forget_details();
}

void Clocks::forget_details() {
    if (!details_) return;
    details_ = by_thread_ = false;
    std::fill(more_.begin(), more_.end(), nullptr);
    std::fill(seen_.begin(), seen_.end(), nullptr);
    std::fill(fenced_.begin(), fenced_.end(), 0);
    std::fill(covered_.begin(), covered_.end(), nullptr);
    released_.clear();
}

bool Clocks::ordered(unsigned warp, unsigned lane, unsigned by, unsigned by_lane, uint32_t stamp) const {
    if (warp == by && lane == by_lane) return true;
    if (stamp <= known(warp, by)) return true;
    if (!by_thread_) return false;
    const Shared &more = more_[warp * kLanes + lane];
    return more && stamp <= (*more)[place(by, by_lane)];
}

uint32_t Clocks::known_of_all(unsigned warp, unsigned lane, unsigned by) const {
    const Vector *more = by_thread_ ? more_[warp * kLanes + lane].get() : nullptr;
    if (!more) return known(warp, by);
    const uint32_t *part = more->data() + place(by, 0);
    uint32_t least = ~0u;
    for (uint32_t todo = exists_[by]; todo; todo &= todo - 1) least = std::min(least, part[std::countr_zero(todo)]);
    return exists_[by] ? std::max(least, known(warp, by)) : known(warp, by);
}

bool Clocks::knows_start(unsigned warp, unsigned lane, unsigned block) const {
    if (all_started_ || warp / per_block_ == block) return true;
    const Vector *more = by_thread_ ? more_[warp * kLanes + lane].get() : nullptr;
    for (unsigned v = block * per_block_; v < (block + 1) * per_block_; ++v) {
        if (known(warp, v) >= start_) return true;
        for (unsigned l = 0; more && l < kLanes; ++l)
            if ((*more)[place(v, l)] >= start_) return true;
    }
    return false;
}

bool Clocks::known_to_all(unsigned by, uint32_t stamp) const {
    for (unsigned w = 0; w < warps_; ++w)
        if (known(w, by) < stamp) return false;
    return true;
}

Clocks::Shared Clocks::starts() const {
    auto sum = std::make_shared<Vector>(everyones());
    std::fill_n(sum->begin(), warps_ * kLanes, std::max(start_, everyone_));
    return sum;
}

void Clocks::refresh(unsigned warp) {
    const unsigned first = warp / per_block_ * per_block_;
    uint32_t least = known(warp, first);
    for (unsigned v = first + 1; v < first + per_block_; ++v) least = std::min(least, known(warp, v));
    ordered_below_[warp] = least + 1;
}

// A barrier that all living lanes of a warp reach counts its exited ones too.
uint32_t Clocks::with_exited(unsigned warp, uint32_t lanes) const {
    return whole(warp, lanes) ? exists_[warp] : lanes & exists_[warp];
}

void Clocks::barrier(unsigned block, const uint32_t *lanes_by_warp, bool counted) {
    const unsigned first = block * per_block_;
    bool full = true;
    for (unsigned w = 0; w < per_block_; ++w)
        full = full && whole(first + w, lanes_by_warp[w]) && (lanes_by_warp[w] || !counted);
    if (!full || blocks_ > 1) {
        std::array<uint32_t, kMaxWarps> lanes;
        std::fill_n(lanes.begin(), warps_, 0);
        for (unsigned w = 0; w < per_block_; ++w) lanes[first + w] = full ? exists_[first + w] : lanes_by_warp[w];
        return join(lanes.data());
    }
    everyone_ = now_++;
    for (unsigned w = 0; w < warps_; ++w) stamp_[w] = ordered_below_[w] = now_;
    forget_details();
}

void Clocks::warp_barrier(unsigned warp, uint32_t lanes) {
    if (whole(warp, lanes) && !by_thread_) {
        known_of(warp, warp) = stamp_[warp];
        stamp_[warp] = ++now_;
        refresh(warp);
        return;
    }
    std::array<uint32_t, kMaxWarps> only;
    std::fill_n(only.begin(), warps_, 0);
    only[warp] = lanes;
    join(only.data());
}

void Clocks::join(const uint32_t *lanes_by_warp) {
    std::array<uint32_t, kMaxWarps> lanes;
    bool by_warp = !by_thread_;
    for (unsigned w = 0; w < warps_; ++w) {
        lanes[w] = lanes_by_warp[w] ? with_exited(w, lanes_by_warp[w]) : 0;
        by_warp = by_warp && (lanes[w] == 0 || lanes[w] == exists_[w]);
    }
    if (by_warp) {
        std::array<uint32_t, kMaxWarps> sum;
        std::fill_n(sum.begin(), warps_, 0);
        for (unsigned w = 0; w < warps_; ++w) {
            if (!lanes[w]) continue;
            for (unsigned v = 0; v < warps_; ++v) sum[v] = std::max(sum[v], known_of(w, v));
            sum[w] = std::max(sum[w], stamp_[w]);
        }
        for (unsigned w = 0; w < warps_; ++w) {
            if (!lanes[w]) continue;
            for (unsigned v = 0; v < warps_; ++v) known_of(w, v) = std::max(known_of(w, v), sum[v]);
        }
    } else {
        join_threads(lanes.data());
    }
    ++now_;
    for (unsigned w = 0; w < warps_; ++w) {
        if (!lanes[w]) continue;
        stamp_[w] = now_;
        refresh(w);
    }
}

// Raises `sum` to what the thread knows; of itself it knows all up to `own`.
void Clocks::add_knowledge(Vector &sum, unsigned warp, unsigned lane, uint32_t own) const {
    for (unsigned v = 0; v < warps_; ++v) {
        const uint32_t stamp = known(warp, v);
        uint32_t *part = &sum[v * kLanes];
        for (unsigned l = 0; l < kLanes; ++l) part[l] = std::max(part[l], stamp);
    }
    const unsigned thread = warp * kLanes + lane;
    if (const Shared &more = more_[thread]) {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = std::max(sum[i], (*more)[i]);
    }
    sum[thread] = std::max(sum[thread], own);
}

void Clocks::join_threads(const uint32_t *lanes_by_warp) {
    auto sum = std::make_shared<Vector>(everyones());
    for (unsigned w = 0; w < warps_; ++w) {
        const Vector *added = nullptr;  // most lanes share one vector
        for (uint32_t rest = lanes_by_warp[w]; rest; rest &= rest - 1) {
            const unsigned lane = std::countr_zero(rest), thread = w * kLanes + lane;
            const bool first = rest == lanes_by_warp[w];
            if (first || (more_[thread] && more_[thread].get() != added)) {
                add_knowledge(*sum, w, lane, stamp_[w]);
                added = more_[thread].get();
            }
            (*sum)[thread] = std::max((*sum)[thread], stamp_[w]);
        }
    }
    for (unsigned w = 0; w < warps_; ++w) {
        if (lanes_by_warp[w]) learn(w, lanes_by_warp[w], sum);
    }
}

// Lanes of a warp now know `sum`: whole warps in known_ as far as it goes, the rest by thread.
void Clocks::learn(unsigned warp, uint32_t lanes, const Shared &sum) {
    bool rest = true;
    if (whole(warp, lanes)) {
        rest = false;
        for (unsigned v = 0; v < warps_; ++v) {
            uint32_t least = ~0u, most = 0;
            for (uint32_t todo = exists_[v]; todo; todo &= todo - 1) {
                const uint32_t stamp = (*sum)[v * kLanes + std::countr_zero(todo)];
                least = std::min(least, stamp);
                most = std::max(most, stamp);
            }
            if (exists_[v] == 0) continue;
            known_of(warp, v) = std::max(known_of(warp, v), least);
            rest = rest || most > known(warp, v);
        }
        for (size_t channel = warps_ * kLanes; channel < sum->size(); ++channel)
            rest = rest || (*sum)[channel] > everyone_;
    }
    details_ = details_ || rest;
    by_thread_ = by_thread_ || rest;
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        more_[warp * kLanes + std::countr_zero(todo)] = rest ? sum : nullptr;
    }
}

void Clocks::fence(unsigned warp, uint32_t lanes) {
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        const unsigned lane = std::countr_zero(todo), thread = warp * kLanes + lane;
        fenced_[thread] = stamp_[warp];
        if (!seen_[thread]) continue;
        auto sum = std::make_shared<Vector>(*seen_[thread]);
        seen_[thread] = nullptr;
        add_knowledge(*sum, warp, lane, stamp_[warp]);
        more_[thread] = std::move(sum);
        by_thread_ = true;
    }
    details_ = true;
    stamp_[warp] = ++now_;
}

void Clocks::cluster_fence(unsigned warp, uint32_t lanes) {
    fence(warp, lanes);
    if (covered_.empty()) return;
    // One vector for all lanes: they know nearly the same, and a barrier that one of them arrives at needs them all.
    Shared covered;
    release(warp, lanes, covered);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) covered_[warp * kLanes + std::countr_zero(rest)] = covered;
}

void Clocks::release_fenced(unsigned warp, uint32_t lanes, Shared &place) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest), thread = warp * kLanes + lane;
        if (!covered_.empty()) {
            if (!covered_[thread]) continue;
            if (place != covered_[thread]) join(place, covered_[thread]);
        } else if (fenced_[thread]) {
            auto sum = std::make_shared<Vector>(place ? *place : everyones());
            add_knowledge(*sum, warp, lane, fenced_[thread]);
            place = std::move(sum);
        }
    }
}

void Clocks::see(unsigned warp, uint32_t lanes, const Shared &place) {
    if (!place) return;
    details_ = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) join(seen_[warp * kLanes + std::countr_zero(rest)], place);
}

void Clocks::release(unsigned warp, uint32_t lanes, Shared &place) {
    auto sum = std::make_shared<Vector>(place ? *place : everyones());
    const Vector *added = nullptr;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest), thread = warp * kLanes + lane;
        if (rest == lanes || more_[thread].get() != added) add_knowledge(*sum, warp, lane, stamp_[warp]);
        added = more_[thread].get();
        (*sum)[thread] = std::max((*sum)[thread], stamp_[warp]);
    }
    place = std::move(sum);
    stamp_[warp] = ++now_;
}

bool Clocks::know(unsigned warp, uint32_t lanes, const Vector &stamps) const {
    const Vector *looked_at = nullptr;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned thread = warp * kLanes + unsigned(std::countr_zero(rest));
        const Vector *more = more_[thread].get();
        if (rest != lanes && more == looked_at) continue;  // most lanes share one vector
        looked_at = more;
        for (size_t i = 0; i < stamps.size(); ++i) {
            const bool itself = i == thread && lanes == 1u << thread % kLanes;
            const uint32_t known_so_far = std::max(known(warp, unsigned(i / kLanes)), more ? (*more)[i] : 0);
            if (stamps[i] > known_so_far && !itself) return false;
        }
    }
    return true;
}

void Clocks::acquire(unsigned warp, uint32_t lanes, const Shared &place) {
    if (!place) return;
    for (uint32_t left = lanes; left;) {  // those that know the same together
        const unsigned first = std::countr_zero(left);
        const Shared known = more_[warp * kLanes + first];
        uint32_t group = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            const unsigned lane = std::countr_zero(rest);
            group |= uint32_t(more_[warp * kLanes + lane] == known) << lane;
        }
        left &= ~group;
        auto sum = std::make_shared<Vector>(*place);
        add_knowledge(*sum, warp, first, 0);
        learn(warp, group, sum);
    }
    refresh(warp);
}

void Clocks::join(Shared &to, const Shared &from) {
    if (!from) return;
    if (!to) {
        to = from;
        return;
    }
    auto sum = std::make_shared<Vector>(*to);
    for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] = std::max((*sum)[i], (*from)[i]);
    to = std::move(sum);
}

uint32_t Clocks::proxy_release(unsigned block, unsigned channel, Shared &to) {
    auto sum = std::make_shared<Vector>(to ? *to : everyones());
    (*sum)[place(proxy(block), channel)] = ++now_;
    to = std::move(sum);
    return now_++;
}

void Clocks::synchronize_at(unsigned warp, unsigned lane, uint64_t address, bool reads, bool writes, bool acquire,
                            bool release) {
    const unsigned thread = warp * kLanes + lane;
    const uint32_t up_to = release ? stamp_[warp] : writes ? fenced_[thread] : 0;
    if (reads && !released_.empty()) {
        if (auto found = released_.find(address); found != released_.end() && found->second != more_[thread]) {
            if (acquire) {
                auto sum = std::make_shared<Vector>(*found->second);
                add_knowledge(*sum, warp, lane, stamp_[warp]);
                more_[thread] = std::move(sum);
                by_thread_ = true;
            } else if (!seen_[thread]) {
                seen_[thread] = found->second;
            } else if (seen_[thread] != found->second) {
                auto sum = std::make_shared<Vector>(*found->second);
                for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] = std::max((*sum)[i], (*seen_[thread])[i]);
                seen_[thread] = std::move(sum);
            }
        }
    }
    if (up_to == 0) return;
    details_ = true;
    Shared &place = released_[address];
    auto sum = place ? std::make_shared<Vector>(*place) : std::make_shared<Vector>(everyones());
    add_knowledge(*sum, warp, lane, up_to);
    place = std::move(sum);
    if (release) stamp_[warp] = ++now_;
}

}  // namespace warpsim
