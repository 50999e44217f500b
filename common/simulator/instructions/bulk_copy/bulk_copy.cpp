#include "instructions/bulk_copy/bulk_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/names.h"
#include "core/program.h"
#include "counters/trace.h"
#include "definedness/definedness.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/mbarrier/mbarrier.h"
#include "machine/addresses.h"
#include "machine/completions.h"
#include "machine/global_hazards.h"

namespace warpsim {
namespace {

using std::to_string;

constexpr unsigned kAlignment = 16;
constexpr std::byte kPoison{0xff};
constexpr size_t kMostStores = 1024;  // in flight: a kernel that never waits must not eat the host's memory

BulkForm form_of(const Op &op) {
    return unpack<BulkForm>(op.extra);
}

// One lane's copy.
struct Copy {
    uint32_t shared = 0, mbarrier = 0, bytes = 0;
    uint64_t global = 0;
    std::byte *host = nullptr;
};

bool multiple_of_16(Warp &w, const Op &op, unsigned lane, uint64_t value, const char *what) {
    if (value % kAlignment == 0) return true;
    report_hazard(w, op, HazardKind::misaligned, int(lane), value,
                  "the bulk copy at " + where(*w.block->program, op.index) + " has " + what + " " + to_string(value) +
                      ", which is no multiple of 16");
    return false;
}

// What a store reads, as few stretches as it takes.
std::vector<SharedStretch> stretches_of(uint32_t from, uint32_t bytes, const std::vector<StorePart> &parts) {
    uint32_t sum = 0;
    for (const StorePart &part : parts) sum += part.bytes;
    if (parts.empty() || sum == bytes) return {{from, bytes}};
    std::vector<SharedStretch> all;
    for (const StorePart &part : parts) all.push_back({from + part.at, part.bytes});
    std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.address < b.address; });
    std::vector<SharedStretch> merged;
    for (const SharedStretch &s : all) {
        if (!merged.empty() && merged.back().address + merged.back().bytes == s.address) {
            merged.back().bytes += s.bytes;
        } else {
            merged.push_back(s);
        }
    }
    return merged;
}

// A store's source, which is about to reach global memory: undefined values are reported.
void check_source(Warp &w, const Op &op, unsigned lane, std::span<const SharedStretch> stretches) {
    SharedShadow &shadow = *w.block->shadow;
    if (!shadow.undefined()) return;
    for (const SharedStretch &s : stretches) {
        const uint32_t at = shadow.first_undefined(s.address, s.bytes);
        if (at == s.address + s.bytes) continue;
        const uint32_t stored = shadow.stored().origin(at);
        const uint32_t origin =
            stored ? stored : w.block->definedness->origin(Definedness::Source::shared, w, op, lane, at);
        return w.block->definedness->matters(w, op, lane, origin, Use::global_store);
    }
}

// Sizes and addresses of each lane's copy, checked and counted; calls `each` for the good ones.
template <class F>
void for_each_copy(Warp &w, const Op &op, Intent shared_intent, Intent global_intent, F each) {
    const BulkForm form = form_of(op);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    uint64_t shared[kLanes], global[kLanes];
    if (form.kind != BulkKind::prefetch) {
        lane_addresses(w, with_address(op, op.a, op.imm, form.shared_base32), shared);
        for (unsigned i = 0; form.generic_shared && i < kLanes; ++i)
            if ((shared[i] & kWindowMask) == kSharedWindow) shared[i] -= kSharedWindow;
    }
    const int64_t offset = int64_t(list[kBulkGlobalLow] | uint64_t(list[kBulkGlobalHigh]) << 32);
    lane_addresses(w, with_address(op, list[kBulkGlobal], offset, form.global_base32), global);
    const uint32_t *size = w.lanes<uint32_t>(op.b);
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        Copy copy;
        copy.bytes = size[lane];
        copy.global = global[lane];
        if (!multiple_of_16(w, op, lane, copy.bytes, "the size") ||
            !multiple_of_16(w, op, lane, copy.global, "the global address")) {
            continue;
        }
        OpStats &stats = w.stats[op.index];
        ++stats.bulk_copies;
        stats.bulk_bytes += copy.bytes;
        if (copy.bytes == 0) continue;
        uint64_t host[kLanes];
        std::fill_n(host, kLanes, copy.global);
        const Op at_global = with_address(op, kNoSlot, 0, false);
        if (!resolve_global(w, at_global, MemorySpace::global, global_intent, host, copy.bytes, 1u << lane,
                            kAlignment)) {
            continue;
        }
        copy.host = reinterpret_cast<std::byte *>(host[lane]);
        if (form.kind != BulkKind::prefetch) {
            if (!multiple_of_16(w, op, lane, shared[lane], "the shared address")) continue;
            if (!in_shared(w, op, shared_intent, lane, shared[lane], copy.bytes)) continue;
            copy.shared = uint32_t(shared[lane]);
            if (GlobalShadow *shadow = w.block->global_shadow)
                shadow->access_range(w, op, copy_flags(global_intent), lane, copy.global, copy.bytes);
        }
        each(lane, copy);
    }
}

template <class T>
T combined(BulkOperation operation, T a, T b) {
    switch (operation) {
        case BulkOperation::add:
            if constexpr (std::is_integral_v<T>) {
                using Wraps = std::make_unsigned_t<T>;
                return T(Wraps(a) + Wraps(b));
            } else {
                return a + b;
            }
        case BulkOperation::min:
            return std::min(a, b);
        case BulkOperation::max:
            return std::max(a, b);
        default:
            break;
    }
    if constexpr (std::is_unsigned_v<T>) {
        switch (operation) {
            case BulkOperation::inc:
                return a >= b ? 0 : a + 1;
            case BulkOperation::dec:
                return a == 0 || a > b ? b : a - 1;
            case BulkOperation::and_:
                return a & b;
            case BulkOperation::or_:
                return a | b;
            case BulkOperation::xor_:
                return a ^ b;
            default:
                break;
        }
    }
    return a;
}

// Floats, as bits of type T: they are added, and those of 16 bits compared.
template <class Add, class Min, class Max>
struct Floats {
    template <class T>
    static T of(BulkOperation operation, T a, T b) {
        return operation == BulkOperation::add   ? Add::of(a, b, 0, true)
               : operation == BulkOperation::min ? Min::of(a, b, 0, true)
                                                 : Max::of(a, b, 0, true);
    }
};
template <bool bf16>
using Halves = Floats<AddHalf<bf16>, PickHalf<bf16, false>, PickHalf<bf16, true>>;

struct Integers {
    template <class T>
    static T of(BulkOperation operation, T a, T b) {
        return combined(operation, a, b);
    }
};

template <class T, class Kind = Integers>
void combine(std::byte *to, const std::byte *from, uint32_t bytes, BulkOperation operation) {
    for (uint32_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, to + at, sizeof a);
        std::memcpy(&b, from + at, sizeof b);
        a = Kind::of(operation, a, b);
        std::memcpy(to + at, &a, sizeof a);
    }
}

}  // namespace

Op with_address(const Op &op, uint32_t slot, int64_t offset, bool base32) {
    Op other = op;
    other.a = slot;
    other.imm = offset;
    other.extra = base32 ? kBase32 : 0;
    return other;
}

bool in_shared(Warp &w, const Op &op, Intent intent, unsigned lane, uint64_t address, uint32_t bytes) {
    uint64_t ends[kLanes];
    uint32_t offsets[kLanes];
    std::fill_n(ends, kLanes, address);
    if (!check_shared(w, op, intent, ends, offsets, kAlignment, 1u << lane)) return false;
    std::fill_n(ends, kLanes, address + bytes - kAlignment);
    return check_shared(w, op, intent, ends, offsets, kAlignment, 1u << lane);
}

void combine(BulkOperation operation, ptx::Type type, std::byte *to, const std::byte *from, uint32_t bytes) {
    switch (type) {
        case ptx::Type::s32:
            return combine<int32_t>(to, from, bytes, operation);
        case ptx::Type::s64:
            return combine<int64_t>(to, from, bytes, operation);
        case ptx::Type::u64:
        case ptx::Type::b64:
            return combine<uint64_t>(to, from, bytes, operation);
        case ptx::Type::f32:
            return combine<uint32_t, Floats<AddF32, AddF32, AddF32>>(to, from, bytes, operation);
        case ptx::Type::f64:
            return combine<double>(to, from, bytes, operation);
        case ptx::Type::f16:
            return combine<uint16_t, Halves<false>>(to, from, bytes, operation);
        case ptx::Type::bf16:
            return combine<uint16_t, Halves<true>>(to, from, bytes, operation);
        default:
            return combine<uint32_t>(to, from, bytes, operation);
    }
}

void issue_bulk_load(Warp &w, const Op &op, const Op &at_mbarrier, unsigned lane, uint32_t to,
                     std::vector<std::byte> data) {
    uint32_t address[kLanes];
    if (!mbarrier_addresses(w, at_mbarrier, address, 1u << lane)) return;
    Mbarrier *m = find_mbarrier(w, op, lane, address[lane], true);
    if (!m) return;
    limit_arrivals(*w.block);
    Completions &c = *w.block->completions;
    const uint32_t bytes = uint32_t(data.size());
    if (w.trace) w.trace->mbarrier(w, op, TraceEvent::Kind::copy, m->number, int64_t(m->phase), 1, bytes);
    MbarrierArrival arrival;
    arrival.warp = &w;
    arrival.op = &op;
    arrival.lanes = 1u << lane;
    arrival.mbarrier = address[lane];
    arrival.number = c.issued++;
    arrival.to = to;
    arrival.data = std::move(data);
    if (w.block->shadow) arrival.transfer = w.block->shadow->bulk_write_issue(w, op, lane, to, bytes, address[lane]);
    std::memset(w.block->shared + to, int(kPoison), bytes);
    c.arrivals.push_back(std::move(arrival));
    changed_mbarrier(*w.block, address[lane], *m);
}

BulkStore &issue_bulk_store(Warp &w, const Op &op, unsigned lane, uint32_t from, uint32_t bytes, uint64_t to,
                            std::byte *host, std::vector<StorePart> parts) {
    Completions &c = *w.block->completions;
    if (c.bulk_groups.empty()) c.bulk_groups.resize(size_t(w.block->warps) * kLanes);
    const std::vector<SharedStretch> stretches = stretches_of(from, bytes, parts);
    if (c.stores.size() >= kMostStores) {
        BulkStore &oldest = c.stores.front();
        read_source(oldest);
        write_destination(oldest);
        if (w.block->shadow && !oldest.waited)
            w.block->shadow->bulk_read_complete(*oldest.warp, oldest.lane, oldest.transfer);
        c.stores.erase(c.stores.begin());
    }
    BulkStore store;
    store.warp = &w;
    store.op = &op;
    store.lane = lane;
    store.group = c.bulk_groups[w.id * kLanes + lane];
    store.number = c.issued++;
    store.from = from;
    store.bytes = bytes;
    store.to = to;
    store.host = host;
    store.parts = std::move(parts);
    if (w.block->shadow) {
        store.transfer = w.block->shadow->bulk_read_issue(w, op, lane, stretches);
        check_source(w, op, lane, stretches);
    }
    return c.stores.emplace_back(std::move(store));
}

void exec_bulk_load(Warp &w, const Op &op) {
    const BulkForm form = form_of(op);
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    Op at_mbarrier = with_address(op, list[kBulkMbarrier], int32_t(list[kBulkMbarrierOffset]), form.mbarrier_base32);
    if (form.generic_mbarrier) at_mbarrier.extra |= kMbarrierGeneric;
    for_each_copy(w, op, Intent::write, Intent::read, [&](unsigned lane, const Copy &copy) {
        issue_bulk_load(w, op, at_mbarrier, lane, copy.shared, {copy.host, copy.host + copy.bytes});
    });
}

void exec_bulk_store(Warp &w, const Op &op) {
    for_each_copy(w, op, Intent::read, Intent::write, [&](unsigned lane, const Copy &copy) {
        issue_bulk_store(w, op, lane, copy.shared, copy.bytes, copy.global, copy.host);
    });
}

// Combined at once, in the block's turn, so that sums repeat; the source is in use until it is waited for.
void exec_bulk_reduce(Warp &w, const Op &op) {
    for_each_copy(w, op, Intent::read, Intent::atomic, [&](unsigned lane, const Copy &copy) {
        const BulkForm form = form_of(op);
        BulkStore &store = issue_bulk_store(w, op, lane, copy.shared, copy.bytes, copy.global, copy.host);
        read_source(store);
        combine(form.operation, form.type, store.host, store.data.data(), store.bytes);
        store.written = true;
    });
}

void exec_bulk_prefetch(Warp &w, const Op &op) {
    for_each_copy(w, op, Intent::read, Intent::read, [](unsigned, const Copy &) {});
}

void exec_bulk_commit(Warp &w, const Op &) {
    std::vector<uint64_t> &groups = w.block->completions->bulk_groups;
    if (groups.empty()) groups.resize(size_t(w.block->warps) * kLanes);
    for (unsigned i = 0; i < kLanes; ++i) groups[w.id * kLanes + i] += w.exec >> i & 1;
}

void exec_bulk_wait(Warp &w, const Op &op) {
    Completions &c = *w.block->completions;
    if (c.bulk_groups.empty()) return;
    for (uint32_t rest = c.stores.empty() ? 0 : w.exec; rest; rest &= rest - 1) {
        const uint32_t thread = w.id * kLanes + unsigned(std::countr_zero(rest));
        c.bulk_waits[thread][op.b ? 1 : 0] = {&op, c.issued, c.bulk_groups[thread]};
    }
    const auto done = [&](BulkStore &store) {
        if (store.warp != &w || !(w.exec >> store.lane & 1)) return false;
        const uint64_t committed = c.bulk_groups[w.id * kLanes + store.lane];
        if (committed <= uint64_t(op.imm) || store.group >= committed - uint64_t(op.imm)) return false;
        if (!store.waited) {
            store.waited = true;
            read_source(store);
            if (w.block->shadow) w.block->shadow->bulk_read_complete(w, store.lane, store.transfer);
        }
        if (op.b) return false;  // .read
        write_destination(store);
        return true;
    };
    std::erase_if(c.stores, done);
}

}  // namespace warpsim
