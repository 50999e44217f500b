#include "hazard/global_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "core/names.h"
#include "core/program.h"
#include "hazard/global_text.h"

// A line keeps a list of records, the latest first. Most accesses find the record of the same op and warp there and
// only add their granules to it. Lists are looked through only where the masks of the line say that the same granules
// have been touched in a way that may conflict, so that memory that is only read, or only written once, costs no
// search.

namespace warpsim {

namespace {

constexpr unsigned kLooked = 4;     // records at the head of a list that an access may be added to
constexpr unsigned kMostKept = 64;  // records of a line: then the older half is forgotten, and a conflict may be missed
constexpr size_t kManyNumbers = 4096;
constexpr unsigned kDoubted = 4;  // turns of a team before a doubt of its counts as settled

uint64_t mask_of(unsigned first, unsigned count) {
    return (count >= kLineGranules ? ~0ull : (1ull << count) - 1) << first;
}

bool is_update(unsigned flags) {
    return flags & kGlobalUpdate;
}

bool read_and_update(const GlobalRecord &a, const GlobalRecord &b) {
    return (is_plain_read(a.flags) && is_update(b.flags)) || (is_plain_read(b.flags) && is_update(a.flags));
}

}  // namespace

struct GlobalShadow::Touch {
    Warp &warp;
    const Op &op;
    unsigned flags;
    const StoredValues *values;
    uint32_t knowledge;
};

void GlobalShadow::start(Clocks &clocks, uint64_t team, unsigned warps_of_block, const Program &program) {
    clocks_ = &clocks;
    program_ = &program;
    team_ = team;
    era_ = clocks.era();
    warps_of_block_ = warps_of_block;
    granule_shift_ = unsigned(std::countr_zero(program.global_granule));
    communicates_ = program.communicates;
    order_.start(clocks, team);
    published_ = 0;
    table_.clear();
    records_.resize(1);
    payloads_.clear();
    changed_.clear();
    pieces_.clear();
    doubts_.clear();
    looks_.clear();
    watches_early_ = false;
    early_.clear();
}

void GlobalShadow::access(Warp &w, const Op &op, unsigned flags, const uint64_t *address, unsigned bytes, uint32_t exec,
                          const StoredValues *values) {
    if (era_ != clocks_->era()) {  // all that came before is ordered
        era_ = clocks_->era();
        for (GlobalRecord &record : records_) record.stamp = 0;
    }
    pieces_.clear();
    Touch touch{w, op, flags, values, 0};
    if (!communicates_ || !order_.differs_by_thread()) {
        touch.knowledge = communicates_ ? order_.known(w.agent, unsigned(std::countr_zero(exec))) : 0;
        return access_lanes(touch, address, bytes, exec);
    }
    for (uint32_t rest = exec; rest;) {
        touch.knowledge = order_.known(w.agent, unsigned(std::countr_zero(rest)));
        uint32_t same = 0;
        for (uint32_t left = rest; left; left &= left - 1) {
            const unsigned lane = unsigned(std::countr_zero(left));
            same |= uint32_t(order_.known(w.agent, lane) == touch.knowledge) << lane;
        }
        access_lanes(touch, address, bytes, same);
        rest &= ~same;
    }
}

// Lanes that touch one place together make one record, and so do neighbours that touch neighbouring places.
void GlobalShadow::access_lanes(const Touch &t, const uint64_t *address, unsigned bytes, uint32_t exec) {
    uint32_t breaks = 1u << 31;
    for (unsigned i = 0; i + 1 < kLanes; ++i) breaks |= uint32_t(address[i + 1] - address[i] != bytes) << i;
    breaks |= ~exec | ~exec >> 1;
    for (uint32_t rest = exec; rest;) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const unsigned run = unsigned(std::countr_zero(breaks >> lane)) + 1;
        GlobalRecord record;
        record.first_lane = uint8_t(lane);
        uint32_t lanes = 1u << lane;
        if (run > 1) {
            lanes = mask_of(lane, run) & kAllLanes;
            record.form = LaneForm::spread;
            record.log = uint8_t(std::max(0, std::countr_zero(bytes) - int(granule_shift_)));
            touch_range(t, address[lane], uint64_t(bytes) * run, record);
        } else {
            uint32_t equal = 0;
            for (unsigned i = 0; i < kLanes; ++i) equal |= uint32_t(address[i] == address[lane]) << i;
            lanes = equal & rest;
            if (lanes & (lanes - 1)) {
                record.form = LaneForm::uniform;
                record.lanes = lanes;
                if ((t.flags & kGlobalWrites) && !(t.flags & kGlobalStrong)) check_lanes(t, address, lanes);
            }
            touch_range(t, address[lane], bytes, record);
        }
        rest &= ~lanes;
    }
}

void GlobalShadow::access_range(Warp &w, const Op &op, unsigned flags, unsigned lane, uint64_t address,
                                uint64_t bytes) {
    const uint64_t granule = uint64_t(1) << granule_shift_, begin = (address + granule - 1) & ~(granule - 1),
                   end = (address + bytes) & ~(granule - 1);
    pieces_.clear();
    if (begin >= end) return;
    GlobalRecord record;
    record.first_lane = uint8_t(lane);
    touch_range({w, op, flags, nullptr, communicates_ ? order_.known(w.agent, lane) : 0}, begin, end - begin, record);
}

void GlobalShadow::touch_range(const Touch &t, uint64_t address, uint64_t bytes, GlobalRecord record) {
    record.op = t.op.index;
    record.stamp = clocks_->stamp(t.warp.agent);
    record.knowledge = t.knowledge;
    record.agent = uint16_t(t.warp.agent);
    record.flags = uint8_t(t.flags);
    record.published = published_;
    const uint64_t first = address >> granule_shift_, end = first + std::max<uint64_t>(bytes >> granule_shift_, 1);
    if (watches_early_ && !order_.has_waited(t.warp.agent, record.first_lane)) [[unlikely]] {
        const bool more = !early_.empty() && early_.back().op == t.op.index && early_.back().flags == t.flags &&
                          early_.back().end == address;
        if (!more) early_.push_back({address, address, t.flags, t.op.index});
        early_.back().end = address + bytes;
    }
    for (uint64_t at = first; at < end;) {
        const uint64_t key = at / kLineGranules;
        const unsigned begin = unsigned(at % kLineGranules);
        const unsigned count = unsigned(std::min<uint64_t>(end - at, kLineGranules - begin));
        record.mask = mask_of(begin, count);
        record.begin = int32_t(int64_t(first) - int64_t(key * kLineGranules));
        if (record.form != LaneForm::spread) record.begin = 0;
        const uint32_t line = touch(t, key, record);
        if (t.values) {
            const uint32_t from = uint32_t((at - first) << granule_shift_);
            pieces_.push_back({line, begin << granule_shift_, count << granule_shift_, record.first_lane, from});
        }
        at += count;
    }
}

// Returns the line's number.
uint32_t GlobalShadow::touch(const Touch &t, uint64_t key, const GlobalRecord &record) {
    GlobalLine &line = table_.at(key);
    if (record.mask & line.rivals(record.flags)) [[unlikely]] {
        check(t, line, record);
        if (record.flags & kGlobalNoncoherent) check_noncoherent(t, line, record);
        if (is_update(record.flags)) note_looks(line, record);
    }
    line.granules[record.flags & (kGlobalWrites | kGlobalStrong)] |= record.mask;
    if (record.flags & kGlobalWrites) line.valued &= ~record.mask;
    add(line, record);
    const uint32_t number = table_.number_of(line);
    if (!line.changed) changed_.push_back(number);
    line.changed = true;
    return number;
}

// To a record of the same op and lanes, where that says no more than what happened, else as one of its own.
void GlobalShadow::add(GlobalLine &line, const GlobalRecord &record) {
    uint32_t number = line.first;
    for (unsigned i = 0; number && i < kLooked; ++i) {
        GlobalRecord &known = records_[number];
        if (known.op == record.op && known.agent == record.agent && known.flags == record.flags &&
            known.knowledge == record.knowledge && known.same_lanes(record) &&
            ((known.stamp == record.stamp && known.published == record.published && known.is_new) ||
             !(known.mask & ~record.mask))) {
            known.is_new = true;
            known.published = record.published;
            known.mask |= record.mask;
            known.stamp = record.stamp;
            return;
        }
        number = known.next;
    }
    if (line.count == kMostKept) {
        uint32_t last = line.first;
        for (unsigned i = 1; i < kMostKept / 2; ++i) last = records_[last].next;
        records_[last].next = 0;
        line.count = kMostKept / 2;
    }
    records_.push_back(record);
    records_.back().next = line.first;
    line.first = uint32_t(records_.size() - 1);
    ++line.count;
}

bool GlobalShadow::ordered(const GlobalRecord &now, unsigned lane, const GlobalRecord &then, unsigned by) const {
    return clocks_->ordered(now.agent, lane, then.agent, by, then.stamp);
}

void GlobalShadow::check(const Touch &t, const GlobalLine &line, const GlobalRecord &now) {
    const bool one_block = clocks_->blocks() == 1;
    const uint32_t below = clocks_->ordered_below(now.agent);
    for (uint32_t number = line.first; number; number = records_[number].next) {
        const GlobalRecord then = records_[number];
        const uint64_t both = now.mask & then.mask;
        if (!both || !may_conflict(now.flags, then.flags) || now.same_thread_each(then)) continue;
        if (one_block && then.stamp < below) continue;
        if (then.stamp < clocks_->ordered_below(now.agent, then.agent)) continue;
        for (uint64_t rest = both; rest; rest &= rest - 1) {
            const unsigned k = unsigned(std::countr_zero(rest));
            const uint32_t mine = now.lanes_at(k), theirs = then.lanes_at(k);
            // Of many lanes the outer ones, as in shared memory.
            const unsigned some[2][2] = {
                {unsigned(std::countr_zero(mine)), 31u - unsigned(std::countl_zero(mine))},
                {unsigned(std::countr_zero(theirs)), 31u - unsigned(std::countl_zero(theirs))}};
            for (unsigned i = 0; i < 4; ++i) {
                const unsigned lane = some[0][i & 1], by = some[1][i >> 1];
                if (ordered(now, lane, then, by)) continue;
                if ((now.flags & then.flags & kGlobalWrites) && same_value(t, line, now, k, lane)) continue;
                if (read_and_update(now, then)) {
                    if (doubts_.size() < kMostDoubts)
                        doubts_.push_back({&t.warp, &t.op, table_.number_of(line), k, lane, by, now, then});
                    return;
                }
                return report(t.warp, t.op, HazardKind::global_race, line, k, now, lane, then, by);
            }
        }
    }
}

// A read that no order makes see what the launch has written before. Where nothing orders the two, it is a race.
void GlobalShadow::check_noncoherent(const Touch &t, const GlobalLine &line, const GlobalRecord &now) {
    for (uint32_t number = line.first; number; number = records_[number].next) {
        const GlobalRecord then = records_[number];
        const uint64_t both = now.mask & then.mask;
        if (!both || !(then.flags & kGlobalWrites)) continue;
        const unsigned k = unsigned(std::countr_zero(both));
        const unsigned lane = unsigned(std::countr_zero(now.lanes_at(k))),
                       by = unsigned(std::countr_zero(then.lanes_at(k)));
        if (ordered(now, lane, then, by))
            return report(t.warp, t.op, HazardKind::noncoherent_read, line, k, now, lane, then, by);
    }
}

// Plain reads of the place by the thread that updates it now, for the first time: what it reads after an update of its
// own is no look before one.
void GlobalShadow::note_looks(const GlobalLine &line, const GlobalRecord &update) {
    const auto each = [&](auto visit) {
        for (uint32_t number = line.first; number; number = records_[number].next)
            if (records_[number].agent == update.agent) visit(records_[number]);
    };
    const auto shares = [&](const GlobalRecord &record, uint64_t granules) {
        for (uint64_t rest = record.mask & granules; rest; rest &= rest - 1) {
            const unsigned k = unsigned(std::countr_zero(rest));
            if (record.lanes_at(k) & update.lanes_at(k)) return true;
        }
        return false;
    };
    uint64_t first = update.mask;
    each([&](const GlobalRecord &record) {
        if (is_update(record.flags) && shares(record, first)) first &= ~record.mask;
    });
    each([&](const GlobalRecord &record) {
        if (is_plain_read(record.flags) && shares(record, first)) looks_.insert(source_of(record.op));
    });
}

// Does the lane store in granule k what the last plain store has left there?
bool GlobalShadow::same_value(const Touch &t, const GlobalLine &line, const GlobalRecord &now, unsigned granule,
                              unsigned lane) const {
    if (!t.values || !(line.valued >> granule & 1)) return false;
    const StoredValues &v = *t.values;
    const unsigned size = 1u << granule_shift_, whole = v.components * v.bytes;
    if (whole == 0) return false;
    const unsigned first = now.form == LaneForm::spread
                               ? unsigned(now.begin + int32_t((lane - now.first_lane) << now.log))
                               : unsigned(std::countr_zero(now.mask));
    const unsigned offset = (granule - first) << granule_shift_;
    if (offset + size > whole) return false;
    const std::byte *mine = v.slot[offset / v.bytes] + size_t(lane) * v.stride + offset % v.bytes;
    return std::memcmp(mine, payload(line) + (size_t(granule) << granule_shift_), size) == 0;
}

// Lanes that store to one place in one instruction.
void GlobalShadow::check_lanes(const Touch &t, const uint64_t *address, uint32_t lanes) {
    const unsigned first = unsigned(std::countr_zero(lanes));
    for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        bool same = t.values != nullptr;
        for (unsigned c = 0; same && c < t.values->components; ++c) {
            const std::byte *slot = t.values->slot[c];
            const size_t stride = t.values->stride;
            same = std::memcmp(slot + first * stride, slot + lane * stride, t.values->bytes) == 0;
        }
        if (same) continue;
        const GlobalPlace now{t.op.index, t.flags, t.warp.agent, lane}, then{t.op.index, t.flags, t.warp.agent, first};
        return report_hazard(t.warp, t.op, HazardKind::global_race, int(lane), address[lane],
                             text_in_block(*t.warp.block, now, then, warps_of_block_, address[lane]));
    }
}

void GlobalShadow::report(Warp &w, const Op &op, HazardKind kind, const GlobalLine &line, unsigned granule,
                          const GlobalRecord &now, unsigned lane, const GlobalRecord &then, unsigned by) {
    if (w.block->hazards->repeats(op, kind, then.op)) return;
    const uint64_t address = (line.key * kLineGranules + granule) << granule_shift_;
    const GlobalPlace here{now.op, now.flags, now.agent, lane}, there{then.op, then.flags, then.agent, by};
    report_hazard(w, op, kind, int(lane), address,
                  text_in_block(*w.block, here, there, warps_of_block_, address, kind));
}

uint64_t GlobalShadow::source_of(uint32_t op) const {
    const OpDebug &debug = program_->debug[op];
    if (!debug.source.line) return op;
    const uint64_t place = uint64_t{debug.source.file} << 32 | debug.source.line;
    return (place * 31 + debug.source.calls) * 0x9e3779b97f4a7c15ull ^ std::hash<std::string>()(debug.text);
}

// Granules of a plain access that ops which count update atomically.
template <class Counts>
uint64_t GlobalShadow::updates(const GlobalLine &line, const GlobalRecord &plain, Counts counts) const {
    uint64_t updated = 0;
    if (!(line.granules[kGlobalStrong | kGlobalWrites] & plain.mask)) return 0;
    for (uint32_t number = line.first; number; number = records_[number].next) {
        const GlobalRecord &update = records_[number];
        if (is_update(update.flags) && counts(update.op)) updated |= update.mask;
    }
    return updated & plain.mask;
}

uint64_t GlobalShadow::updated(const GlobalLine &line, const GlobalRecord &read) const {
    return updates(line, read, [](uint32_t) { return true; });
}

uint64_t GlobalShadow::updated_before(const GlobalLine &line, const GlobalRecord &access) const {
    if (access.flags & kGlobalStrong) return 0;
    return updates(line, access, [&](uint32_t op) { return op <= access.op; });
}

void GlobalShadow::settle_doubts(bool ended) {
    std::vector<Doubt> doubts;
    doubts.swap(doubts_);
    for (Doubt &doubt : doubts) {
        const GlobalLine &line = table_.lines()[doubt.line];
        if (is_look(doubt.now.flags & kGlobalWrites ? doubt.then.op : doubt.now.op)) continue;
        if (!ended && ++doubt.turns < kDoubted) {
            doubts_.push_back(doubt);
            continue;
        }
        report(*doubt.warp, *doubt.op, HazardKind::global_race, line, doubt.granule, doubt.now, doubt.lane, doubt.then,
               doubt.by);
    }
}

void GlobalShadow::stored(const uint64_t *host) {
    for (const Piece &piece : pieces_) {
        GlobalLine &line = table_.lines()[piece.line];
        if (!line.payload) {
            payloads_.resize(payloads_.size() + (size_t(1) << line_shift()));
            line.payload = uint32_t(payloads_.size() >> line_shift());
        }
        std::byte *to = payloads_.data() + (size_t(line.payload - 1) << line_shift()) + piece.at;
        std::memcpy(to, reinterpret_cast<const std::byte *>(host[piece.lane]) + piece.from_lane, piece.bytes);
        line.valued |= mask_of(piece.at >> granule_shift_, piece.bytes >> granule_shift_);
    }
}

void GlobalShadow::forget(uint64_t address, uint64_t bytes) {
    const uint64_t first = address >> granule_shift_, end = (address + bytes) >> granule_shift_;
    for (uint64_t at = first; at < end;) {
        const unsigned begin = unsigned(at % kLineGranules);
        const unsigned count = unsigned(std::min<uint64_t>(end - at, kLineGranules - begin));
        const uint64_t kept = ~mask_of(begin, count);
        if (GlobalLine *line = table_.find(at / kLineGranules)) {
            for (uint64_t &granules : line->granules) granules &= kept;
            for (uint32_t number = line->first; number; number = records_[number].next) records_[number].mask &= kept;
        }
        at += count;
    }
}

void GlobalShadow::handed_in() {
    for (uint32_t number : changed_) table_.lines()[number].changed = false;
    changed_.clear();
    order_.forget_unused(kManyNumbers, [&](const auto &keep) {
        for (const GlobalLine &line : table_.lines())
            for (uint32_t n = line.first; n; n = records_[n].next) records_[n].knowledge = keep(records_[n].knowledge);
    });
}

}  // namespace warpsim
