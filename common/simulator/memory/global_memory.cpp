// Device memory is a reservation (memory/pages.h): a constant difference leads from a device address to its byte.
#include "memory/global_memory.h"

#include <algorithm>
#include <atomic>

#include "core/round_up.h"
#include "core/text.h"
#include "memory/pages.h"

namespace warpsim {
namespace {

constexpr uint64_t kAlignment = 512;  // cudaMalloc promises 256, textures want 512
constexpr uint64_t kMinGap = 4096, kMaxGap = 1 << 20;
constexpr size_t kFreedKept = 4096;

// Unmapped space between allocations, so that a short overrun meets no neighbour.
uint64_t gap_after(uint64_t bytes) {
    return std::clamp(bytes / 4, kMinGap, kMaxGap);
}

}  // namespace

struct GlobalMemory::Impl {
    struct Snapshot {
        std::vector<uint64_t> bases;
        std::vector<const AllocationView *> views;
    };

    uint64_t limit = 0;          // of each device
    std::vector<uint64_t> used;  // by device
    ImageObjects images;
    Reservation reserved;
    // Reserved addresses lie behind all allocations: offset -> bytes, and where the first begins.
    std::map<uint64_t, uint64_t> ranges;
    uint64_t ranges_begin = 0;
    uint64_t cursor = 0;  // where the search for free space goes on, so that freed addresses rest for a while

    mutable std::mutex mutex;
    std::map<uint64_t, AllocationView> live;
    std::map<uint64_t, uint64_t> freed;  // base -> bytes
    std::vector<uint64_t> freed_order;   // ring of the keys of `freed`
    size_t freed_next = 0;

    // Readers use the snapshot without a lock. It is made once lookups under the lock have cost as much.
    mutable std::atomic<const Snapshot *> snapshot{nullptr};
    mutable std::vector<std::unique_ptr<const Snapshot>> snapshots;  // a few old ones stay, for readers still in them
    mutable uint64_t lookups = 0;

    uint64_t address_base() const { return reserved.addresses; }
    ~Impl();
    bool in_reservation(uint64_t address) const { return address - address_base() < reserved.bytes; }
    bool before_ranges(uint64_t address) const { return address - address_base() < ranges_begin; }

    // The range that holds all of these bytes, by offset.
    std::map<uint64_t, uint64_t>::const_iterator range_of(uint64_t address, uint64_t bytes) const {
        const uint64_t offset = address - address_base();
        auto it = ranges.upper_bound(offset);
        if (it == ranges.begin()) return ranges.end();
        --it;
        const uint64_t inside = offset - it->first;
        return inside < it->second && bytes <= it->second - inside ? it : ranges.end();
    }

    // Whether some of these reserved addresses have memory.
    bool any_memory(uint64_t address, uint64_t bytes) const {
        auto it = live.lower_bound(address);
        if (it != live.end() && it->first < address + bytes) return true;
        if (it == live.begin()) return false;
        --it;
        return it->first < address && address - it->first < it->second.bytes;
    }

    void changed() {
        snapshot.store(nullptr, std::memory_order_release);
        lookups = 0;
    }

    const AllocationView *find_locked(uint64_t address, bool resting = false) const {
        auto it = live.upper_bound(address);
        if (it == live.begin()) return nullptr;
        --it;
        const AllocationView &view = it->second;
        return view.rests == resting && address - view.base < std::max<uint64_t>(view.bytes, 1) ? &view : nullptr;
    }

    bool set_resting(uint64_t address, bool rests) {
        const std::lock_guard guard(mutex);
        const auto it = live.find(address);
        if (it == live.end() || it->second.rests == rests) return false;
        it->second.rests = rests;
        if (!rests) fill_with_ones(it->second.host, it->second.bytes);
        changed();
        return true;
    }

    void make_snapshot() const {
        auto made = std::make_unique<Snapshot>();
        made->bases.reserve(live.size());
        made->views.reserve(live.size());
        for (const auto &[base, view] : live) {
            if (view.rests) continue;
            made->bases.push_back(base);
            made->views.push_back(&view);
        }
        snapshot.store(made.get(), std::memory_order_release);
        snapshots.push_back(std::move(made));
        if (snapshots.size() > 8) snapshots.erase(snapshots.begin());
    }

    // Offset of a free range of `bytes` and the gap behind it, or `reserved.bytes` where there is none.
    uint64_t find_space(uint64_t bytes) {
        const uint64_t wanted = round_up(bytes + gap_after(bytes), kAlignment);
        for (int pass = 0; pass < 2; ++pass) {
            uint64_t at = pass == 0 ? cursor : kMinGap;
            for (auto it = live.upper_bound(address_base() + at);; ++it) {
                if (it != live.begin()) {  // may reach over `at`
                    const AllocationView &before = std::prev(it)->second;
                    if (in_reservation(before.base)) {
                        const uint64_t end = before.base - address_base() + before.bytes + gap_after(before.bytes);
                        at = std::max(at, round_up(end, kAlignment));
                    }
                }
                const bool last = it == live.end() || !before_ranges(it->first);
                const uint64_t end = last ? ranges_begin : it->first - address_base();
                if (at + wanted <= end) return at;
                if (last) break;
            }
        }
        return reserved.bytes;
    }

    void remember_freed(uint64_t base, uint64_t bytes) {
        if (freed_order.size() < kFreedKept) {
            freed_order.push_back(base);
        } else {
            freed.erase(freed_order[freed_next]);
            freed_order[freed_next] = base;
            freed_next = (freed_next + 1) % kFreedKept;
        }
        freed[base] = bytes;
    }
};

GlobalMemory::GlobalMemory(uint64_t limit_bytes, unsigned devices)
    : impl_(std::make_shared<Impl>()), images(impl_->images) {
    Impl &m = *impl_;
    m.limit = limit_bytes;
    m.used.resize(devices);
    m.reserved = reserve(limit_bytes * devices);
    m.cursor = kMinGap;
    m.ranges_begin = m.reserved.bytes;
}

GlobalMemory::GlobalMemory(const GlobalMemory &all, unsigned device)
    : impl_(all.impl_), all_(false), device_(device), images(impl_->images) {}

GlobalMemory::~GlobalMemory() = default;

GlobalMemory::Impl::~Impl() {
    for (const auto &[base, view] : live) {
        if (view.kind == MemoryKind::pinned || view.kind == MemoryKind::managed) {
            if (!view.adopted) unmap_memory(view.host, std::max<uint64_t>(view.bytes, 1));
        }
    }
    if (reserved.bytes) warpsim::release(reserved);
}

void GlobalMemory::reach(unsigned peer, bool reaches) {
    peers_ = reaches ? peers_ | 1u << peer : peers_ & ~(1u << peer);
}

bool GlobalMemory::sees(const AllocationView &view) const {
    if (all_ || view.device == device_ || view.kind == MemoryKind::pinned || view.kind == MemoryKind::managed)
        return true;
    return view.pooled ? view.reached_by >> device_ & 1 : peers_ >> view.device & 1;
}

const AllocationView *GlobalMemory::find_foreign(uint64_t address) const {
    const AllocationView *const view = find_in_all(address);
    return view && !sees(*view) ? view : nullptr;
}

void GlobalMemory::set_pool(uint64_t base, uint64_t pool, uint32_t reached_by) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const auto it = m.live.find(base);
    if (it == m.live.end()) return;
    it->second.pooled = true;
    it->second.pool = pool;
    it->second.reached_by = reached_by;
}

void GlobalMemory::change_pool(uint64_t pool, uint32_t reached_by) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    for (auto &[base, view] : m.live)
        if (view.pooled && view.pool == pool) view.reached_by = reached_by;
}

void GlobalMemory::release_all(unsigned device) {
    std::vector<uint64_t> bases;
    {
        const std::lock_guard guard(impl_->mutex);
        for (const auto &[base, view] : impl_->live)
            if (view.device == device) bases.push_back(base);
    }
    for (const uint64_t base : bases) release(base);
}

uint64_t GlobalMemory::allocate(uint64_t bytes, MemoryKind kind, Fill fill) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const bool counted = kind != MemoryKind::pinned;
    uint64_t &used = m.used[device_];
    if (counted && (bytes > m.limit || used > m.limit - bytes)) return 0;
    AllocationView view{.base = 0, .bytes = bytes, .host = nullptr, .kind = kind, .device = uint8_t(device_)};
    if (kind == MemoryKind::pinned || kind == MemoryKind::managed) {
        if (bytes > m.limit) return 0;
        view.host = map_memory(std::max<uint64_t>(bytes, 1));
        if (!view.host) return 0;
        view.base = reinterpret_cast<uint64_t>(view.host);
    } else {
        const uint64_t offset = m.find_space(bytes);
        if (offset == m.reserved.bytes) return 0;
        view.base = m.address_base() + offset;
        view.host = m.reserved.data + offset;
        m.cursor = round_up(offset + bytes + gap_after(bytes), kAlignment);
    }
    if (fill == Fill::zeros) {
        fill_with_zeros(view.host, bytes);
    } else {
        fill_with_ones(view.host, bytes);
    }
    // Freed ranges that this one covers are no longer "freed".
    for (auto it = m.freed.lower_bound(view.base); it != m.freed.end() && it->first < view.base + bytes;) {
        it = m.freed.erase(it);
    }
    if (counted) used += bytes;
    m.live[view.base] = view;
    m.changed();
    return view.base;
}

uint64_t GlobalMemory::adopt(void *host, uint64_t bytes, MemoryKind kind) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const uint64_t base = reinterpret_cast<uint64_t>(host);
    const auto next = m.live.lower_bound(base);
    if (next != m.live.end() && next->first < base + bytes) return 0;
    if (m.find_locked(base)) return 0;
    m.live[base] = {.base = base,
                    .bytes = bytes,
                    .host = static_cast<std::byte *>(host),
                    .kind = kind,
                    .adopted = true,
                    .device = uint8_t(device_)};
    m.freed.erase(base);
    m.changed();
    return base;
}

bool GlobalMemory::release(uint64_t address) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const auto it = m.live.find(address);
    if (it == m.live.end()) return false;
    const AllocationView view = it->second;
    if (view.committed) return false;
    m.live.erase(it);
    m.changed();
    if (view.adopted) return true;
    if (view.kind != MemoryKind::pinned) m.used[view.device] -= view.bytes;
    if (m.in_reservation(view.base)) {
        discard(view.host, view.bytes);
    } else {
        unmap_memory(view.host, std::max<uint64_t>(view.bytes, 1));
    }
    m.remember_freed(view.base, view.bytes);
    return true;
}

// From the end of the reservation on down, with a gap behind each, into the first hole that is large enough.
uint64_t GlobalMemory::reserve_addresses(uint64_t bytes, uint64_t alignment) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    uint64_t end = m.reserved.bytes;
    const auto place = [&](uint64_t lowest) -> uint64_t {
        if (bytes > end || kMaxGap > end - bytes) return 0;
        const uint64_t at = (m.address_base() + end - bytes - kMaxGap) / alignment * alignment;
        return at >= m.address_base() + lowest && at - m.address_base() < end ? at - m.address_base() : 0;
    };
    for (auto it = m.ranges.rbegin(); it != m.ranges.rend(); ++it) {
        if (const uint64_t offset = place(it->first + it->second)) {
            m.ranges[offset] = bytes;
            return m.address_base() + offset;
        }
        end = it->first;
    }
    uint64_t lowest = kMinGap;  // behind the last allocation
    for (const auto &[base, view] : m.live) {
        if (m.before_ranges(base)) lowest = std::max(lowest, base - m.address_base() + view.bytes + kMaxGap);
    }
    const uint64_t offset = place(lowest);
    if (!offset) return 0;
    m.ranges[offset] = bytes;
    m.ranges_begin = offset;
    if (m.cursor > offset) m.cursor = kMinGap;
    return m.address_base() + offset;
}

bool GlobalMemory::free_addresses(uint64_t address, uint64_t bytes) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const auto range = m.range_of(address, bytes);
    if (range == m.ranges.end() || range->first != address - m.address_base() || range->second != bytes) return false;
    if (m.any_memory(address, bytes)) return false;
    m.ranges.erase(range);
    m.ranges_begin = m.ranges.empty() ? m.reserved.bytes : m.ranges.begin()->first;
    m.remember_freed(address, bytes);
    return true;
}

bool GlobalMemory::commit(uint64_t address, uint64_t bytes, uint32_t reached_by) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    const auto range = m.range_of(address, bytes);
    if (!bytes || range == m.ranges.end() || m.any_memory(address, bytes)) return false;
    AllocationView view{.base = address, .bytes = bytes, .host = m.reserved.data + (address - m.address_base())};
    view.device = uint8_t(device_);
    view.pooled = view.committed = true;
    view.reached_by = reached_by;
    const auto is_alike = [&](const AllocationView &other) {
        return other.committed && other.device == view.device && other.reached_by == reached_by;
    };
    fill_with_ones(view.host, bytes);
    // Neighbours, which may be of this range alone: ranges have gaps.
    if (const auto next = m.live.find(address + bytes); next != m.live.end() && is_alike(next->second)) {
        view.bytes += next->second.bytes;
        m.live.erase(next);
    }
    auto before = m.live.lower_bound(address);
    if (before != m.live.begin() && (--before)->second.base + before->second.bytes == address &&
        is_alike(before->second)) {
        before->second.bytes += view.bytes;
    } else {
        m.live[address] = view;
    }
    m.changed();
    return true;
}

void GlobalMemory::decommit(uint64_t address, uint64_t bytes) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    auto it = m.live.upper_bound(address);
    if (it == m.live.begin()) return;
    AllocationView &view = (--it)->second;
    if (!view.contains(address, bytes)) return;
    discard(view.at(address), bytes);
    AllocationView behind = view;
    behind.base = address + bytes;
    behind.host = view.at(address) + bytes;
    behind.bytes = view.base + view.bytes - behind.base;
    view.bytes = address - view.base;
    if (!view.bytes) m.live.erase(it);
    if (behind.bytes) m.live[behind.base] = behind;
    m.changed();
}

bool GlobalMemory::count(uint64_t bytes) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    uint64_t &used = m.used[device_];
    if (bytes > m.limit || used > m.limit - bytes) return false;
    used += bytes;
    return true;
}

void GlobalMemory::uncount(uint64_t bytes) {
    Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    m.used[device_] -= bytes;
}

bool GlobalMemory::rest(uint64_t address) {
    return impl_->set_resting(address, true);
}

bool GlobalMemory::wake(uint64_t address) {
    return impl_->set_resting(address, false);
}

const AllocationView *GlobalMemory::find_resting(uint64_t address) const {
    const std::lock_guard guard(impl_->mutex);
    return impl_->find_locked(address, true);
}

const AllocationView *GlobalMemory::find(uint64_t address) const {
    const AllocationView *const view = find_in_all(address);
    return view && sees(*view) ? view : nullptr;
}

const AllocationView *GlobalMemory::find_in_all(uint64_t address) const {
    const Impl &m = *impl_;
    const Impl::Snapshot *snapshot = m.snapshot.load(std::memory_order_acquire);
    if (!snapshot) {
        const std::lock_guard guard(m.mutex);
        if (++m.lookups > m.live.size() / 4 + 4 && !m.snapshot.load(std::memory_order_relaxed)) m.make_snapshot();
        return m.find_locked(address);
    }
    const auto &bases = snapshot->bases;
    // Branch-free upper bound: the loop's count depends on the size only.
    size_t low = 0;
    for (size_t n = bases.size(); n > 1;) {
        const size_t half = n / 2;
        low = bases[low + half] <= address ? low + half : low;
        n -= half;
    }
    if (bases.empty() || address < bases[low]) return nullptr;
    const AllocationView *view = snapshot->views[low];
    return address - view->base < std::max<uint64_t>(view->bytes, 1) ? view : nullptr;
}

bool GlobalMemory::is_device_address(uint64_t address) const {
    return impl_->in_reservation(address);
}

std::string GlobalMemory::explain(uint64_t address, uint64_t bytes) const {
    const Impl &m = *impl_;
    const std::lock_guard guard(m.mutex);
    if (address < 4096) {
        return address == 0 ? "a null pointer" : "a null pointer plus " + size_text(address);
    }
    if (const AllocationView *view = m.find_locked(address); view && !sees(*view)) {
        const std::string own = std::to_string(device_), other = std::to_string(view->device);
        return "in the " + std::to_string(view->bytes) + "-byte allocation at " + hex(view->base) + " of device " +
               other + ", which device " + own + " cannot reach: " +
               (view->pooled
                    ? "cudaMemPoolSetAccess lets it use the pool's memory"
                    : "cudaDeviceEnablePeerAccess(" + other + ", 0), called for device " + own + ", lets it do so");
    }
    if (const AllocationView *view = m.find_locked(address)) {
        const uint64_t room = view->bytes - (address - view->base);
        if (bytes <= room)
            return "inside the " + std::to_string(view->bytes) + "-byte allocation at " + hex(view->base);
        return "partly past the end of the " + std::to_string(view->bytes) + "-byte allocation at " + hex(view->base) +
               ", by " + size_text(bytes - room);
    }
    if (const AllocationView *view = m.find_locked(address, true))
        return "in the " + std::to_string(view->bytes) + " bytes at " + hex(view->base) +
               " that a graph allocates, which are not there: the allocation has not come yet, or they have been freed";
    if (m.range_of(address, 1) != m.ranges.end())
        return "in reserved addresses that have no memory, or none that the device may access (cuMemMap, "
               "cuMemSetAccess)";
    auto freed = m.freed.upper_bound(address);
    if (freed != m.freed.begin()) {
        --freed;
        if (address - freed->first < freed->second) {
            return "in a " + std::to_string(freed->second) + "-byte allocation at " + hex(freed->first) +
                   " that was freed";
        }
    }
    constexpr uint64_t kNear = 1 << 20;
    const auto after = m.live.lower_bound(address);
    const AllocationView *next = after == m.live.end() ? nullptr : &after->second;
    const AllocationView *before = after == m.live.begin() ? nullptr : &std::prev(after)->second;
    const uint64_t past = before ? address - (before->base + before->bytes) : ~0ull;
    const uint64_t ahead = next ? next->base - address : ~0ull;
    if (past <= ahead && past < std::max(kNear, before ? before->bytes : 0)) {
        return size_text(past) + " past the end of the " + std::to_string(before->bytes) + "-byte allocation at " +
               hex(before->base);
    }
    if (ahead < past && ahead < std::max(kNear, next->bytes)) {
        return size_text(ahead) + " before the " + std::to_string(next->bytes) + "-byte allocation at " +
               hex(next->base);
    }
    return !m.in_reservation(address) && is_mapped(address) ? "not device memory: a host pointer" : "never allocated";
}

uint64_t GlobalMemory::used() const {
    const std::lock_guard guard(impl_->mutex);
    return impl_->used[device_];
}

uint64_t GlobalMemory::limit() const {
    return impl_->limit;
}

}  // namespace warpsim
