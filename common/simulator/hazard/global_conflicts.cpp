#include "hazard/global_conflicts.h"

#include <algorithm>
#include <bit>
#include <cstring>

// Most memory is only read, or written by one team alone: the masks of a line show that without a look at its records.
// Where blocks do not communicate, a record is kept only for granules that no earlier team has touched in the same way:
// one witness for each byte is enough, since each team is here once.

namespace warpsim {

namespace {

constexpr unsigned kMostKept = 32;    // records of a line where teams communicate: then the older half is forgotten
constexpr unsigned kMostReaders = 8;  // teams that are kept for a line that nobody writes

}  // namespace

// The record as other teams see it: what is strong within the team only is plain to them, and a plain read that an
// atomic update checks later counts as strong.
void GlobalConflicts::add_as_seen(const GlobalShadow &team, const GlobalLine &mine, GlobalRecord record) {
    if (record.flags & kGlobalTeam) record.flags &= kGlobalWrites;
    const bool is_look = is_plain_read(record.flags) && team.is_look(record.op);
    const uint64_t checked = is_look ? team.updated(mine, record) : 0;
    if (is_look) looks_.insert(team.source_of(record.op));
    if (!record.is_new) return;
    if (checked) {
        GlobalRecord strong = record;
        strong.mask = checked;
        strong.flags = kGlobalStrong;
        seen_.push_back(strong);
        record.mask &= ~checked;
    }
    if (record.mask) seen_.push_back(record);
}

bool GlobalConflicts::comes_after(const Knowledge &known, const Record &then, unsigned by) const {
    return knows(known, then.team, then.era, then.agent * kLanes + by, then.stamp);
}

bool GlobalConflicts::ordered(const GlobalShadow &team, const GlobalRecord &now, unsigned lane, const Knowledge &known,
                              const Record &then, unsigned by) const {
    return comes_after(known, then, by) ||
           knows(then.known, team.team(), team.era(), now.agent * kLanes + lane, now.stamp);
}

bool GlobalConflicts::same_value(const GlobalShadow &team, const GlobalLine &mine, const Record &then,
                                 unsigned granule) const {
    const std::byte *here = team.payload(mine);
    if (!here || !then.payload || !(mine.valued & then.valued & (1ull << granule))) return false;
    const unsigned shift = team.line_shift() - 6;
    const std::byte *there = payloads_.data() + (size_t(then.payload - 1) << team.line_shift());
    const size_t at = size_t(granule) << shift;
    return std::memcmp(here + at, there + at, size_t(1) << shift) == 0;
}

void GlobalConflicts::strong_access(uint64_t team, bool reads, bool writes, uint32_t published) {
    StrongTurns &turns = strong_[team];
    if (reads) turns.last_read = turn_;
    if (!writes) return;
    if (turns.writes.empty() || turns.writes.back().second != turn_) turns.writes.push_back({0, turn_});
    turns.writes.back().first = published;
}

// Has the team made a strong read after a strong write that the other team made after that read of its?
bool GlobalConflicts::looked_since(uint64_t team, const Record &then) const {
    const auto theirs = strong_.find(then.team), ours = strong_.find(team);
    if (theirs == strong_.end() || ours == strong_.end()) return false;
    const auto &writes = theirs->second.writes;
    const auto after = std::upper_bound(writes.begin(), writes.end(), std::pair{then.published, ~uint64_t{0}});
    return after != writes.end() && ours->second.last_read > after->second;
}

// A look before an update, which this team did not make since it saw that it need not.
bool GlobalConflicts::is_look(const GlobalShadow &team, const GlobalRecord &read, const GlobalRecord &other) const {
    return is_plain_read(read.flags) && (other.flags & kGlobalUpdate) && looks_.count(team.source_of(read.op));
}

void GlobalConflicts::check(GlobalShadow &team, const GlobalLine &mine, const GlobalLine &all, const GlobalRecord &now,
                            const std::function<void(const Conflict &)> &found) {
    const unsigned flags = now.flags;
    const Knowledge &known = team.order().knowledge(now.knowledge);
    for (uint32_t number = all.first; number; number = records_[number].next) {
        const Record &then = records_[number];
        const uint64_t both = now.mask & then.mask;
        if (then.team == team.team() || !both || !may_conflict(flags, then.flags)) continue;
        Conflict conflict;
        bool any = false;
        for (uint64_t rest = both; rest; rest &= rest - 1) {
            const unsigned k = unsigned(std::countr_zero(rest));
            const unsigned lane = unsigned(std::countr_zero(now.lanes_at(k))),
                           by = unsigned(std::countr_zero(then.lanes_at(k)));
            const bool noncoherent = (flags & kGlobalNoncoherent) && comes_after(known, then, by);
            if (!noncoherent) {
                if (ordered(team, now, lane, known, then, by)) continue;
                if ((then.flags & kGlobalUpdate) && (team.updated_before(mine, now) >> k & 1)) continue;
                if (is_look(team, now, then) || is_look(team, then, now)) continue;
                if (is_plain_read(then.flags) && looked_since(team.team(), then)) continue;
            }
            const bool plain = !((flags | then.flags) & kGlobalStrong);
            const bool same = plain && (flags & then.flags & kGlobalWrites) && same_value(team, mine, then, k);
            if (any && same) continue;
            const uint64_t granule = 1ull << k;
            const auto updated = [&](const GlobalLine &line) {
                return (line.granules[0] & granule) && (line.granules[kGlobalWrites] & granule);
            };
            conflict = {{team.team(), now.op, now.flags, now.agent, lane, team.era(), now.stamp},
                        {then.team, then.op, then.flags, then.agent, by, then.era, then.stamp},
                        (mine.key * kLineGranules + k) << (team.line_shift() - 6),
                        updated(mine) && updated(all),
                        same,
                        noncoherent};
            any = true;
            if (!same) break;
        }
        if (any) found(conflict);
    }
}

void GlobalConflicts::add(GlobalShadow &team, const GlobalLine &mine, GlobalLine &all, const GlobalRecord &record) {
    const unsigned flags = record.flags;
    uint64_t &touched = all.granules[flags & (kGlobalWrites | kGlobalStrong)];
    const uint64_t is_new = record.mask & ~touched;
    touched |= record.mask;
    if (!communicates_ && !is_new) return;
    Record kept;
    static_cast<GlobalRecord &>(kept) = record;
    kept.team = team.team();
    kept.era = team.era();
    if (communicates_) {
        kept.known = team.order().knowledge(record.knowledge);
        const bool only_read = !(flags & kGlobalWrites) && !(all.granules[1] | all.granules[3]);
        if (only_read && !is_new && all.count >= kMostReaders) return;
        for (uint32_t number = all.first, i = 0; number && i < kMostReaders; number = records_[number].next, ++i) {
            Record &known = records_[number];
            if (known.team != kept.team || known.agent != kept.agent || known.op != kept.op ||
                known.flags != kept.flags || !known.same_lanes(kept) || (known.mask & ~kept.mask)) {
                continue;
            }
            const uint32_t next = known.next, payload = known.payload;
            known = std::move(kept);
            known.next = next;
            known.payload = payload;
            known.valued = 0;
            return;
        }
        if (all.count == kMostKept) {
            uint32_t last = all.first;
            for (unsigned i = 1; i < kMostKept / 2; ++i) last = records_[last].next;
            records_[last].next = 0;
            all.count = kMostKept / 2;
        }
    } else {
        kept.mask = is_new;
    }
    if ((flags & kGlobalWrites) && !(flags & kGlobalStrong) && (mine.valued & kept.mask)) {
        const size_t bytes = size_t(1) << team.line_shift();
        if (!payload_) {
            const std::byte *values = team.payload(mine);
            payloads_.insert(payloads_.end(), values, values + bytes);
            payload_ = uint32_t(payloads_.size() / bytes);
        }
        kept.payload = payload_;
        kept.valued = mine.valued & kept.mask;
    }
    kept.next = all.first;
    records_.push_back(std::move(kept));
    all.first = uint32_t(records_.size() - 1);
    ++all.count;
}

void GlobalConflicts::hand_in(GlobalShadow &team, const std::function<void(const Conflict &)> &found) {
    for (uint32_t number : team.changed()) {
        const GlobalLine &mine = team.line(number);
        GlobalLine &all = table_.at(mine.key);
        payload_ = 0;
        order_.clear();
        for (uint32_t n = mine.first; n; n = team.record(n).next) order_.push_back(n);
        std::reverse(order_.begin(), order_.end());
        seen_.clear();
        for (uint32_t n : order_) add_as_seen(team, mine, team.record(n));
        for (uint32_t n : order_) team.record(n).is_new = false;
        for (const GlobalRecord &record : seen_)
            if (record.mask & all.rivals(record.flags)) check(team, mine, all, record, found);
        for (const GlobalRecord &record : seen_) add(team, mine, all, record);
    }
    team.handed_in();
    ++turn_;
}

void GlobalConflicts::forget(uint64_t address, uint64_t bytes, unsigned line_shift) {
    const unsigned shift = line_shift - 6;
    const uint64_t first = address >> shift, end = (address + bytes) >> shift;
    for (uint64_t at = first; at < end;) {
        const unsigned begin = unsigned(at % kLineGranules);
        const unsigned count = unsigned(std::min<uint64_t>(end - at, kLineGranules - begin));
        if (GlobalLine *line = table_.find(at / kLineGranules)) {
            const uint64_t kept = ~(((count == kLineGranules ? 0 : 1ull << count) - 1) << begin);
            for (uint64_t &granules : line->granules) granules &= kept;
            for (uint32_t number = line->first; number; number = records_[number].next) records_[number].mask &= kept;
        }
        at += count;
    }
}

}  // namespace warpsim
