// The shadow's everyday work: whole instructions whose accesses are all ordered. Vector loops without branches look at
// the cells; whatever they cannot prove goes to the exact tests of check.cpp, lane by lane.
#include <algorithm>
#include <bit>

#include "hazard/shared_shadow_impl.h"

namespace warpsim {

namespace {

bool uniform(const uint32_t *address) {
    uint32_t bad = 0;
    for (unsigned i = 0; i < 16; ++i) bad |= address[i] ^ address[0];
    return bad == 0;
}

bool halves_agree(const uint32_t *address) {
    uint32_t bad = 0;
    for (unsigned i = 0; i < 16; ++i) bad |= address[i] ^ address[i + 16];
    return bad == 0;
}

template <unsigned Lanes>
bool consecutive(const uint32_t *address, unsigned bytes) {
    uint32_t bad = 0;
    for (unsigned i = 0; i < Lanes; ++i) bad |= address[i] ^ (address[0] + i * bytes);
    return bad == 0;
}

}  // namespace

// The lanes whose addresses are not exempt; all of `kept` are addresses of theirs.
uint32_t SharedShadow::Impl::looked_at(const uint32_t *address, uint32_t exec, uint32_t *kept) const {
    uint32_t lanes = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes |= uint32_t(address[lane] >= exempt_bytes) << lane;
    lanes &= exec;
    for (unsigned lane = 0; lane < kLanes && lanes; ++lane)
        kept[lane] = address[lanes >> lane & 1 ? lane : unsigned(std::countr_zero(lanes))];
    return lanes;
}

void SharedShadow::access(Warp &warp, const Op &op, Access kind, const uint32_t *address, unsigned bytes, uint32_t exec,
                          const StoredValues *values) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    uint32_t kept[kLanes];
    if (m.exempt_bytes) [[unlikely]] {
        exec = m.looked_at(address, exec, kept);
        if (!exec) return;
        address = kept;
    }
    const unsigned log = bytes >> m.shift ? std::countr_zero(bytes >> m.shift) : 0;
    const bool write = kind == Access::write;
    Impl::Instruction i{warp,
                        op,
                        address,
                        bytes,
                        values,
                        0,
                        kind > Access::write,
                        !write && kind != Access::volatile_write,
                        write || kind == Access::atomic || kind == Access::volatile_write};
    if (m.is_foreign(warp)) [[unlikely]]
        return m.foreign_access(i, exec);
    if (i.writes && !m.wgmma_reads.empty()) m.check_wgmma_reads(i, exec, bytes);
    if (i.strong) return m.strong_access(i, exec, log);
    switch (log) {
        case 0:
            return write ? m.write<0>(i, exec) : m.read<0>(i, exec);
        case 1:
            return write ? m.write<1>(i, exec) : m.read<1>(i, exec);
        case 2:
            return write ? m.write<2>(i, exec) : m.read<2>(i, exec);
        case 3:
            return write ? m.write<3>(i, exec) : m.read<3>(i, exec);
        case 4:
            return write ? m.write<4>(i, exec) : m.read<4>(i, exec);
        default:
            return write ? m.write<5>(i, exec) : m.read<5>(i, exec);  // 32 bytes by the byte: the widest
    }
}

template <unsigned Log, unsigned Lanes>
bool SharedShadow::Impl::readable(unsigned warp, uint32_t granule, unsigned lane0) const {
    constexpr unsigned count = Lanes << Log;
    const uint32_t *c = cell.data() + granule;
    const uint32_t first = initialised_cell(), window = (clocks.ordered_below(warp) << kStampShift) - first;
    uint32_t bad = 0;
    for (unsigned i = 0; i < count; ++i) bad |= c[i] - first >= window;
    if (bad == 0) return true;
    // Not ordered for all threads; for this one it may be: its own writes, or its warp's before a __syncwarp.
    const uint32_t own = (clocks.ordered_below(warp, warp) << kStampShift) - first;
    const uint32_t me = (warp << 5) + lane0;
    bad = 0;
    for (unsigned i = 0; i < count; ++i) {
        const uint32_t age = c[i] - first;
        const bool mine = ((c[i] & kWhoMask) == me + (i >> Log)) & (age < kPending - first);
        const bool of_warp = (agent_warp(c[i]) == warp) & (age < own);
        bad |= !((age < window) | mine | of_warp);
    }
    return bad == 0;
}

template <unsigned Log, unsigned Lanes>
bool SharedShadow::Impl::writable(unsigned warp, uint32_t granule, unsigned lane0) const {
    constexpr unsigned count = Lanes << Log;
    const uint32_t *c = cell.data() + granule;
    const uint32_t limit = clocks.ordered_below(warp) << kStampShift;
    uint32_t bad = 0;
    for (unsigned i = 0; i < count; ++i) bad |= c[i] >= limit;
    if (bad) {
        const uint32_t own = clocks.ordered_below(warp, warp) << kStampShift;
        const uint32_t me = (warp << 5) + lane0;
        bad = 0;
        for (unsigned i = 0; i < count; ++i) {
            const bool mine = ((c[i] & kWhoMask) == me + (i >> Log)) & (c[i] != kPending);
            const bool of_warp = (agent_warp(c[i]) == warp) & (c[i] < own);
            bad |= !((c[i] < limit) | mine | of_warp);
        }
        if (bad) return false;
    }
    if (reads.latest() < clocks.ordered_below(warp)) return true;
    for (unsigned v = 0; v < warps; ++v) {
        const uint32_t below = clocks.ordered_below(warp, v);
        if (reads.last(v) < below) continue;
        const uint32_t *row = reads.row(v) + granule;
        const uint32_t limit_v = below << kStampShift;
        if (v == warp) {
            for (unsigned i = 0; i < count; ++i) {
                bad |= !((row[i] < limit_v) | ((row[i] & kWhoMask) == (lane0 + (i >> Log)) * 33));
            }
        } else {
            for (unsigned i = 0; i < count; ++i) bad |= row[i] >= limit_v;
        }
    }
    return bad == 0;
}

bool SharedShadow::Impl::writable_lane(unsigned warp, uint32_t granule, unsigned lane, unsigned log) const {
    if (strong_used || !early.empty() || !reads_in_flight.empty() || !foreign.empty()) return false;
    switch (log) {
        case 0:
            return writable<0, 1>(warp, granule, lane);
        case 1:
            return writable<1, 1>(warp, granule, lane);
        case 2:
            return writable<2, 1>(warp, granule, lane);
        case 3:
            return writable<3, 1>(warp, granule, lane);
        case 4:
            return writable<4, 1>(warp, granule, lane);
        default:
            return false;
    }
}

template <unsigned Log, unsigned Lanes>
bool SharedShadow::Impl::read_range(Instruction &i, unsigned lane0) {
    const uint32_t granule = i.address[lane0] >> shift;
    const unsigned warp = i.warp.id;
    if (!readable<Log, Lanes>(warp, granule, lane0)) return false;
    AccessTable::Writer(reads, warp, clocks.stamp(warp), i.op.index).range<Log, Lanes>(granule, lane0);
    return true;
}

template <unsigned Log, unsigned Lanes>
bool SharedShadow::Impl::write_range(Instruction &i, unsigned lane0) {
    const uint32_t granule = i.address[lane0] >> shift;
    const unsigned warp = i.warp.id;
    if (!writable<Log, Lanes>(warp, granule, lane0)) return false;
    uint32_t *c = cell.data() + granule, *by = maker.data() + granule;
    const uint32_t me = (clocks.stamp(warp) << kStampShift) + (warp << 5) + lane0, op = i.op.index;
    for (unsigned k = 0; k < Lanes << Log; ++k) c[k] = me + (k >> Log);
    for (unsigned k = 0; k < Lanes << Log; ++k) by[k] = op;
    return true;
}

// Both halves of the warp read the same places, as the rows of threads of a matrix product do.
template <unsigned Log>
bool SharedShadow::Impl::read_twins(Instruction &i) {
    const uint32_t *address = i.address;
    const unsigned warp = i.warp.id;
    const uint32_t first = initialised_cell(), window = (clocks.ordered_below(warp) << kStampShift) - first;
    uint32_t bad = 0;
    if (address[15] == address[0] + 15 * i.bytes && consecutive<16>(address, i.bytes)) {
        const uint32_t granule = address[0] >> shift;
        for (unsigned k = 0; k < 16u << Log; ++k) bad |= cell[granule + k] - first >= window;
        if (bad) return false;
        AccessTable::Writer(reads, warp, clocks.stamp(warp), i.op.index).range<Log, 16, 16>(granule, 0);
        return true;
    }
    for (unsigned lane = 0; lane < 16; ++lane) {
        const uint32_t *c = cell.data() + (address[lane] >> shift);
        for (unsigned k = 0; k < 1u << Log; ++k) bad |= c[k] - first >= window;
    }
    if (bad) return false;
    AccessTable::Writer writer(reads, warp, clocks.stamp(warp), i.op.index);
    for (unsigned lane = 0; lane < 16; ++lane) writer.same<Log>(address[lane] >> shift, lane, lane + 16);
    return true;
}

// Each lane reads 16 bytes or more somewhere, as ldmatrix does.
template <unsigned Log>
bool SharedShadow::Impl::read_rows(Instruction &i, uint32_t exec) {
    const unsigned warp = i.warp.id;
    const uint32_t first = initialised_cell(), window = (clocks.ordered_below(warp) << kStampShift) - first;
    uint32_t oldest[1u << Log] = {};  // what is ordered is below the window
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const uint32_t *c = cell.data() + (i.address[std::countr_zero(rest)] >> shift);
        for (unsigned k = 0; k < 1u << Log; ++k) oldest[k] = std::max(oldest[k], c[k] - first);
    }
    if (*std::max_element(oldest, oldest + (1u << Log)) >= window) return false;
    AccessTable::Writer writer(reads, warp, clocks.stamp(warp), i.op.index);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const uint32_t lane = uint32_t(std::countr_zero(rest));
        writer.same<Log>(i.address[lane] >> shift, lane, lane);
    }
    return true;
}

template <unsigned Log>
void SharedShadow::Impl::read(Instruction &i, uint32_t exec) {
    const uint32_t *address = i.address;
    if (exec == kAllLanes && !strong_used && halves_agree(address) && read_twins<Log>(i)) return;
    if (exec == kAllLanes && !strong_used && address[31] == address[0] + 31 * i.bytes &&
        consecutive<32>(address, i.bytes) && read_range<Log, 32>(i, 0)) {
        return;
    }
    if constexpr (Log >= 2) {
        if (!strong_used && address[0] != address[1] && read_rows<Log>(i, exec)) return;
    }
    const unsigned warp = i.warp.id;
    const uint32_t first = initialised_cell(), window = (clocks.ordered_below(warp) << kStampShift) - first;
    // Written by this warp itself, before a __syncwarp: ordered, too.
    const uint32_t own = (clocks.ordered_below(warp, warp) << kStampShift) - first;
    // Threads in a grid of 16 columns often read the same in both halves of a warp.
    uint32_t differ = exec != kAllLanes || strong_used || address[0] == address[1];
    for (unsigned k = 0; k < kLanes / 2; ++k) differ |= address[k] ^ address[k + kLanes / 2];
    const bool halves_agree = differ == 0;
    AccessTable::Writer writer(reads, warp, clocks.stamp(warp), i.op.index);
    for (uint32_t rest = exec; rest;) {
        const unsigned lane = std::countr_zero(rest);
        const uint32_t granule = address[lane] >> shift;
        if (lane % 16 == 0 && (rest >> lane & 0xffff) == 0xffff && !strong_used &&
            address[lane + 15] == address[lane] + 15 * i.bytes && consecutive<16>(address + lane, i.bytes) &&
            read_range<Log, 16>(i, lane)) {
            rest &= ~(0xffffu << lane);
            continue;
        }
        const bool row = lane % 16 == 0 && (rest >> lane & 0xffff) == 0xffff && address[lane + 15] == address[lane];
        uint32_t bad = strong_used;
        for (unsigned k = 0; k < 1u << Log; ++k) {
            const uint32_t c = cell[granule + k], age = c - first;
            bad |= !((age < window) | ((age < own) & (agent_warp(c) == warp)));
        }
        if (bad) [[unlikely]] {
            for (unsigned k = 0; k < 1u << Log; ++k) check_read(i, lane, granule + k);
            writer.same<Log>(granule, lane, lane);
            rest &= rest - 1;
            continue;
        }
        if (row && uniform(address + lane)) {
            writer.same<Log>(granule, lane, lane + 15);
            rest &= ~(0xffffu << lane);
            continue;
        }
        unsigned last = lane;  // of a run of lanes that read the same place
        rest &= rest - 1;
        if (halves_agree && lane < kLanes / 2) {
            last = lane + kLanes / 2;
            rest &= ~(1u << last);
        } else {
            while (last < 31 && (rest >> (last + 1) & 1) && address[last + 1] == address[lane]) {
                ++last;
                rest &= rest - 1;
            }
        }
        writer.same<Log>(granule, lane, last);
    }
}

template <unsigned Log>
void SharedShadow::Impl::write(Instruction &i, uint32_t exec) {
    const uint32_t *address = i.address;
    const bool plain = !strong_used && early.empty() && reads_in_flight.empty() && foreign.empty();
    if (exec == kAllLanes && plain && address[31] == address[0] + 31 * i.bytes && consecutive<32>(address, i.bytes) &&
        write_range<Log, 32>(i, 0)) {
        return;
    }
    const unsigned warp = i.warp.id;
    const uint32_t now = clocks.stamp(warp) << kStampShift, limit = clocks.ordered_below(warp) << kStampShift;
    const bool no_reads = plain && reads.latest() < clocks.ordered_below(warp);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest);
        const uint32_t granule = address[lane] >> shift;
        uint32_t bad = !no_reads;
        for (unsigned k = 0; k < 1u << Log; ++k) bad |= cell[granule + k] >= limit;
        if (bad && !(plain && writable<Log, 1>(warp, granule, lane))) {
            for (unsigned k = 0; k < 1u << Log; ++k) check_write(i, lane, granule + k);
        }
        for (unsigned k = 0; k < 1u << Log; ++k) {
            if (cell[granule + k] >= kFirstMark) continue;  // reported; the copy still ends later
            cell[granule + k] = now | warp << 5 | lane;
            maker[granule + k] = i.op.index;
        }
        i.done |= 1u << lane;
    }
}

}  // namespace warpsim
