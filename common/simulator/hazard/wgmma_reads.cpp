// wgmma's operands in the shadow. The asynchronous proxy reads them, at some time between the instruction and a wait of
// its warpgroup: what it reads must be there for all four warps and fenced for the proxy, and until then nobody may
// write there. A wait of any of the warps ends the reads, and what that warp releases afterwards orders them: programs
// let one thread of the warpgroup say that a buffer is empty.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/program.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

namespace {

constexpr size_t kMostReads = 4096;  // of those that have been waited for: far more than tiles have descriptors
constexpr size_t kChunksAtOnce = 32;

}  // namespace

// All writes up to this stamp are fenced for the proxy, if threads have made them; 0: none that is known.
uint32_t SharedShadow::Impl::fenced_by_all(uint32_t below) {
    if (proxy_fenced.empty()) return 0;
    if (!fences_known) {
        least_fenced = ~0u;
        most_fenced = 0;
        for (const auto &fences : proxy_fenced) {
            least_fenced = std::min(least_fenced, fences[0]);
            most_fenced = std::max(most_fenced, fences[0]);
        }
        fences_known = true;
    }
    return most_fenced < below ? least_fenced : 0;
}

// Whether it is plain that the tile's bytes are there for the four warps, and fenced. `below`: they know of everything
// before that stamp.
bool SharedShadow::Impl::wgmma_readable(Warp *const (&readers)[4], const SharedTile &tile, uint32_t below) {
    if (strong_used || !foreign.empty()) return false;
    // Threads' writes: an interval of cells. Those of the proxy are few different ones.
    const uint32_t first = initialised_cell() + 1, end = std::min(below, fenced_by_all(below) + 1) << kStampShift;
    const uint32_t length = end > first ? end - first : 0;
    uint32_t good = kFirstMark, other = kFirstMark;  // no cell is that: 0 would be one that nobody has written
    const auto is_good = [&](uint32_t c) { return c - first < length || c == good || c == other; };
    const auto all_are = [&]<unsigned Step>(uint32_t same, const uint32_t *chunks, size_t count) {
        typedef uint32_t Cells __attribute__((vector_size(4 * Step)));
        Cells differ = {};
        for (size_t k = 0; k < count; ++k) {
            Cells found;
            std::memcpy(&found, cell.data() + (chunks[k] >> shift), sizeof found);
            differ |= found ^ same;
        }
        uint32_t bits[Step];
        std::memcpy(bits, &differ, sizeof bits);
        return std::all_of(bits, bits + Step, [](uint32_t b) { return b == 0; });
    };
    const auto by_steps = [&]<unsigned Step>() {
        const size_t count = tile.chunks.size();
        for (size_t at = 0; at < count; at += kChunksAtOnce) {
            const size_t until = std::min(at + kChunksAtOnce, count);
            // What one bulk copy wrote is all the same.
            const uint32_t usual = cell[tile.chunks[at] >> shift];
            if (is_good(usual) && all_are.template operator()<Step>(usual, tile.chunks.data() + at, until - at))
                continue;
            for (unsigned tries = 0;; ++tries) {
                uint32_t bad[Step] = {};
                for (size_t k = at; k < until; ++k) {
                    const uint32_t *c = cell.data() + (tile.chunks[k] >> shift);
                    for (unsigned i = 0; i < Step; ++i)
                        bad[i] |= (c[i] - first >= length) & (c[i] != good) & (c[i] != other);
                }
                if (std::find(bad, bad + Step, 1u) == bad + Step) break;
                uint32_t found = 0;
                for (size_t k = at; k < until && !found; ++k) {
                    const uint32_t *c = cell.data() + (tile.chunks[k] >> shift);
                    const uint32_t *there = std::find_if_not(c, c + Step, is_good);
                    found = there == c + Step ? 0 : *there;
                }
                if (tries == 2 || found < first || found >= kFirstMark || agent_warp(found) != kProxy) return false;
                for (const Warp *warp : readers)
                    if (!ordered(*warp, 0, clocks.agent(kProxy), agent_lane(found), found >> kStampShift)) return false;
                other = good;
                good = found;
            }
        }
        return true;
    };
    switch (kChunkBytes >> shift) {
        case 4:
            return by_steps.operator()<4>();
        case 8:
            return by_steps.operator()<8>();
        case 16:
            return by_steps.operator()<16>();
        default:
            return false;
    }
}

uint32_t SharedShadow::wgmma_issue(Warp *const (&warps)[4], const Op &op, const Tiles &tiles) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(*warps[0]);
    uint32_t good[8], good_count = 0;  // last writes that are known to be in order
    uint32_t below = ~0u;              // all four warps know of everything before it
    for (const Warp *warp : warps) below = std::min(below, m.clocks.ordered_below(warp->id));
    const auto is_plainly_good = [&](uint32_t cell) {
        if (cell <= m.initialised_cell() || cell >= below << kStampShift) return false;
        const unsigned thread = agent_warp(cell) * kLanes + agent_lane(cell);
        if (thread >= m.proxy_fenced.size()) return agent_warp(cell) == kProxy;
        const uint32_t fenced = m.proxy_fenced[thread][0];
        return fenced >= cell >> kStampShift && fenced < below;
    };
    const unsigned step = kChunkBytes >> m.shift;
    for (const auto &tile : tiles) {
        if (!tile || m.wgmma_readable(warps, *tile, below)) continue;
        for (uint32_t chunk : tile->chunks) {
            const uint32_t first = chunk >> m.shift;
            const uint32_t *cells = m.cell.data() + first;
            uint32_t differ = 0;
            for (unsigned i = 1; i < step; ++i) differ |= cells[i] ^ cells[0];
            if (!differ && std::find(good, good + good_count, cells[0]) != good + good_count) continue;
            for (unsigned i = 0; i < step; ++i) {
                const uint32_t cell = cells[i];
                if (is_plainly_good(cell) || std::find(good, good + good_count, cell) != good + good_count) continue;
                uint32_t addresses[kLanes] = {chunk};
                for (Warp *warp : warps) {
                    Impl::Instruction reader{*warp, op, addresses, kChunkBytes, nullptr, 0, false, true, false};
                    m.check_read(reader, 0, first + i);
                    m.check_proxy(reader, 0, first + i);
                }
                if (cell > m.initialised_cell() && cell < kFirstMark) good[good_count++ % 8] = cell;
                good_count = std::min(good_count, 8u);
            }
        }
    }
    m.forget_wgmma_reads();
    const uint32_t number = ++m.wgmma_issued;
    for (const auto &tile : tiles) {
        if (!tile) continue;
        m.wgmma_first = m.wgmma_reads.empty() ? tile->first : std::min(m.wgmma_first, tile->first);
        m.wgmma_end = m.wgmma_reads.empty() ? tile->end : std::max(m.wgmma_end, tile->end);
        m.wgmma_reads.push_back({number, op.index, warps[0]->id, tile, 0, {}});
    }
    return number;
}

void SharedShadow::wgmma_wait(Warp &warp, uint32_t number) {
    Impl &m = *impl_;
    const unsigned first_warp = warp.id / 4 * 4;
    std::array<const SharedTile *, 2> tiles = {};  // whose reads the warpgroup's first wait ends
    size_t count = 0;
    for (auto read = m.wgmma_reads.rbegin(); read != m.wgmma_reads.rend() && read->number >= number; ++read) {
        if (read->number != number || read->first_warp != first_warp) continue;
        if (!read->waited) tiles[count++] = read->tile.get();
        read->waited |= 1u << warp.id % 4;
        read->stamps[warp.id % 4] = m.clocks.stamp(warp.id);
    }
    if (count) m.forget_older_reads(first_warp, number, tiles);
}

// A warpgroup that reads a tile again, and waits for that too, has waited for its earlier reads of it before: who comes
// after the later wait comes after the earlier ones. So the later read alone is kept.
void SharedShadow::Impl::forget_older_reads(unsigned first_warp, uint32_t number,
                                            const std::array<const SharedTile *, 2> &tiles) {
    std::erase_if(wgmma_reads, [&](const WgmmaRead &read) {
        if (!read.waited || read.number >= number || read.first_warp != first_warp) return false;
        return std::find(tiles.begin(), tiles.end(), read.tile.get()) != tiles.end();
    });
}

// Those that are ordered before everything that may come, and the oldest where there are too many.
void SharedShadow::Impl::forget_wgmma_reads() {
    uint32_t below = ~0u;
    for (unsigned w = 0; w < warps; ++w) below = std::min(below, clocks.ordered_below(w));
    size_t left = wgmma_reads.size();
    std::erase_if(wgmma_reads, [&](const WgmmaRead &read) {
        if (!read.waited) return false;
        bool over = left > kMostReads;
        for (unsigned i = 0; i < 4; ++i) over = over || ((read.waited >> i & 1) && read.stamps[i] < below);
        left -= over;
        return over;
    });
}

bool SharedShadow::Impl::wgmma_read_ordered(const WgmmaRead &read, unsigned agent, unsigned lane) const {
    for (unsigned i = 0; i < 4; ++i) {
        if (!(read.waited >> i & 1)) continue;
        for (unsigned by = 0; by < kLanes; ++by)
            if (clocks.all->ordered(agent, lane, clocks.base + read.first_warp + i, by, read.stamps[i])) return true;
    }
    return false;
}

bool SharedShadow::Impl::wgmma_reads_over(const Warp &warp, unsigned lane, uint32_t address) const {
    return std::all_of(wgmma_reads.begin(), wgmma_reads.end(), [&](const WgmmaRead &read) {
        return !read.tile->holds(address) || wgmma_read_ordered(read, warp.agent, lane);
    });
}

void SharedShadow::Impl::check_wgmma_reads(Instruction &i, uint32_t exec, uint32_t bytes) {
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const uint32_t first = i.address[lane], end = first + bytes;
        if (end <= wgmma_first || first >= wgmma_end) continue;
        for (const WgmmaRead &read : wgmma_reads) {
            if (end <= read.tile->first || first >= read.tile->end) continue;
            uint32_t at = first;
            while (at < end && !read.tile->holds(at)) at = at / kChunkBytes * kChunkBytes + kChunkBytes;
            if (at >= end || wgmma_read_ordered(read, i.warp.agent, lane)) continue;
            const HazardKind kind = read.waited ? HazardKind::shared_race : HazardKind::async_pending;
            if (i.warp.block->hazards->repeats(i.op, kind, read.op)) return;
            const Program &program = *i.warp.block->program;
            const std::string there = where(program, read.op), group = "warps " + std::to_string(read.first_warp) +
                                                                       " to " + std::to_string(read.first_warp + 3);
            std::string text = std::string(i.op.cls == OpClass::bulk_copy ? "bulk copy's write" : "write") + " at " +
                               where(program, i.op.index) + " by thread " + std::to_string(i.warp.id * kLanes + lane) +
                               " of shared memory that the wgmma at " + there;
            text += read.waited
                        ? " of " + group +
                              " read: nothing orders the two. A warp has waited for it by wgmma.wait_group, and no "
                              "barrier and no arrival at an mbarrier carries that wait to the writing thread" +
                              last_wait_text(i.warp, lane, program)
                        : " may still be reading: " +
                              i.warp.block->hazards->wait_text(Grouped::wgmma, read.first_warp, 0, read.number,
                                                               "the warpgroup of " + group, "this write");
            return report(i.warp, i.op, kind, lane, at, std::move(text));
        }
    }
}

}  // namespace warpsim
