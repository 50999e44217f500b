#include "hazard/footprint.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "core/names.h"
#include "core/program.h"
#include "hazard/global_conflicts.h"
#include "hazard/global_text.h"

namespace warpsim {

namespace {

constexpr size_t kMostConflicts = 8;
constexpr unsigned kKept = kGlobalWrites | kGlobalStrong | kGlobalSystem;

// Strong accesses are no conflict where each has a scope that has the other.
bool both_strong(unsigned a, unsigned b, bool same_device) {
    return (a & b & kGlobalStrong) && (same_device || (a & b & kGlobalSystem));
}

bool is_flag_and_read(unsigned a, unsigned b) {
    return a == kStreamFlag && b == (kGlobalStrong | kGlobalSystem);
}

}  // namespace

unsigned Footprint::Detail::thread_at(uint64_t address) const {
    const unsigned k = unsigned((address >> shift) - first);
    return record.agent * kLanes + unsigned(std::countr_zero(record.lanes_at(k)));
}

uint32_t Footprint::add_access(Access access) {
    accesses_.push_back(std::move(access));
    return uint32_t(accesses_.size() - 1);
}

void Footprint::add(uint64_t begin, uint64_t end, unsigned flags, uint32_t access) {
    if (begin < end) pieces_.push_back({begin, end, access, uint8_t(flags & kKept), 0});
}

void Footprint::add_op(const Program &program, uint64_t begin, uint64_t end, unsigned flags, uint32_t op) {
    const auto [found, is_new] = by_op_.try_emplace(op * 2 + (flags & kGlobalWrites), uint32_t(accesses_.size()));
    if (is_new) {
        const GlobalPlace place{op, flags, 0, 0};
        const ptx::SourceLocation source = program.debug[op].nearest;
        const std::string at = " at " + where(program, op);
        Access access{access_verb(program, place) + at, access_did(program, place) + at, {}, 0, 0};
        if (source.line) access.file = file_name(program, source);
        if (!access.file.empty()) access.line = source.line;
        accesses_.push_back(std::move(access));
    }
    add(begin, end, flags, found->second);
}

void Footprint::add_all(GlobalConflicts &touched, const Program &program, bool detailed, uint64_t skip,
                        uint64_t skipped) {
    const unsigned shift = unsigned(std::countr_zero(program.global_granule));
    touched.each([&](uint64_t key, const auto &record) {
        if (skipped && (key * kLineGranules << shift) - skip < skipped) return;
        for (uint64_t rest = record.mask; rest;) {
            const unsigned first = unsigned(std::countr_zero(rest));
            const unsigned count = unsigned(std::countr_one(rest >> first));
            const uint64_t begin = (key * kLineGranules + first) << shift, end = begin + (uint64_t(count) << shift);
            add_op(program, begin, end, record.flags, record.op);
            rest = first + count == kLineGranules ? 0 : rest & ~0ull << (first + count);
            if (!detailed) continue;
            details_.push_back({record, key * kLineGranules, shift, record.team, record.era, record.known});
            pieces_.back().detail = uint32_t(details_.size());
        }
    });
}

void Footprint::finish() {
    const auto kind = [](const Piece &p) { return std::make_tuple(p.access, p.flags, p.detail); };
    std::sort(pieces_.begin(), pieces_.end(), [&](const Piece &a, const Piece &b) {
        return std::tuple_cat(kind(a), std::make_tuple(a.begin)) < std::tuple_cat(kind(b), std::make_tuple(b.begin));
    });
    size_t kept = 0;
    for (size_t i = 0; i < pieces_.size(); ++i) {
        if (kept && kind(pieces_[kept - 1]) == kind(pieces_[i]) && pieces_[i].begin <= pieces_[kept - 1].end) {
            pieces_[kept - 1].end = std::max(pieces_[kept - 1].end, pieces_[i].end);
        } else {
            pieces_[kept++] = pieces_[i];
        }
    }
    pieces_.resize(kept);
    pieces_.shrink_to_fit();
    std::sort(pieces_.begin(), pieces_.end(), [&](const Piece &a, const Piece &b) {
        return std::tuple_cat(std::make_tuple(a.begin), kind(a)) < std::tuple_cat(std::make_tuple(b.begin), kind(b));
    });
    reach_.clear();
    for (const Piece &piece : pieces_) reach_.push_back(std::max(reach_.empty() ? 0 : reach_.back(), piece.end));
}

bool Footprint::writes() const {
    return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece &p) { return p.flags & kGlobalWrites; });
}

// Whether what the two knew of each other orders them for all bytes that they share; else `address` is the first where
// it does not.
bool Footprint::ordered(const Piece &mine, const Footprint &other, const Piece &theirs, const Told &told,
                        uint64_t &address) const {
    address = std::max(mine.begin, theirs.begin);
    if (mine.detail && told(details_[mine.detail - 1].known, false)) return true;
    if (theirs.detail && told(other.details_[theirs.detail - 1].known, true)) return true;
    if (!mine.detail || !theirs.detail) return false;
    const Detail &a = details_[mine.detail - 1], &b = other.details_[theirs.detail - 1];
    const uint64_t end = std::min(mine.end, theirs.end), step = uint64_t(1) << std::min(a.shift, b.shift);
    for (; address < end; address += step) {
        if (knows(a.known, b.team, b.era, b.thread_at(address), b.record.stamp)) continue;
        if (knows(b.known, a.team, a.era, a.thread_at(address), a.record.stamp)) continue;
        return false;
    }
    return true;
}

std::vector<Footprint::Conflict> Footprint::conflicts(const Footprint &other, bool same_device,
                                                      const Told &told) const {
    std::vector<Conflict> found;
    if (empty() || other.empty() || pieces_.front().begin >= other.reach_.back() ||
        other.pieces_.front().begin >= reach_.back()) {
        return found;
    }
    std::set<std::pair<uint32_t, uint32_t>> known;
    for (const Piece &mine : pieces_) {
        // Of the pieces that begin before this one ends, those before `at` end too soon.
        size_t at =
            size_t(std::upper_bound(other.reach_.begin(), other.reach_.end(), mine.begin) - other.reach_.begin());
        for (; at < other.pieces_.size() && other.pieces_[at].begin < mine.end; ++at) {
            const Piece &theirs = other.pieces_[at];
            if (theirs.end <= mine.begin || !((mine.flags | theirs.flags) & kGlobalWrites)) continue;
            if (both_strong(mine.flags, theirs.flags, same_device)) continue;
            if (is_flag_and_read(mine.flags, theirs.flags) || is_flag_and_read(theirs.flags, mine.flags)) continue;
            if (access(mine).fill && access(mine).fill == other.access(theirs).fill) continue;
            if (known.count({mine.access, theirs.access})) continue;
            Conflict conflict{&mine, &theirs, 0, bool(mine.flags & theirs.flags & kGlobalStrong)};
            if (ordered(mine, other, theirs, told, conflict.address)) continue;
            known.insert({mine.access, theirs.access});
            found.push_back(conflict);
            if (found.size() == kMostConflicts) return found;
        }
    }
    return found;
}

}  // namespace warpsim
