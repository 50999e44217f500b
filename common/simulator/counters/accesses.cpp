#include "counters/accesses.h"

#include <algorithm>
#include <bit>

#include "core/names.h"
#include "core/program.h"

namespace warpsim {

AccessLog::AccessLog(const Program &program, uint64_t most)
    : program_(program), most_(most), shared_seen_(program.ops.size()), global_seen_(program.ops.size()) {}

AccessRecord *AccessLog::add(const Op &op, unsigned bytes, uint32_t exec) {
    const OpDebug &debug = program_.debug[op.index];
    AccessRecord &record = records_.emplace_back();
    record.file = file_name(program_, debug.source);
    record.line = debug.source.line;
    if (is_header(program_, debug.source)) record.inlined = calls_to(program_, debug.source);
    record.ptx_line = debug.ptx_line;
    record.kind = access_kind(op.cls);
    record.bytes = bytes;
    record.lanes = exec;
    return &record;
}

void AccessLog::shared(const Op &op, const uint32_t *offset, unsigned bytes, uint32_t exec, SharedCost cost,
                       unsigned matrices) {
    if (shared_seen_[op.index]++ >= most_) return;
    AccessRecord *record = add(op, bytes, exec);
    record->shared = true;
    record->matrices = matrices;
    for (unsigned i = 0; i < kLanes; ++i) record->addresses[i] = (exec >> i & 1) ? offset[i] : 0;
    record->cost = cost.wavefronts;
    record->ideal = cost.ideal;
}

void AccessLog::global(const Op &op, const uint64_t *address, unsigned bytes, uint32_t exec, GlobalCost cost) {
    if (global_seen_[op.index]++ >= most_) return;
    AccessRecord *record = add(op, bytes, exec);
    for (unsigned i = 0; i < kLanes; ++i) record->addresses[i] = (exec >> i & 1) ? address[i] : 0;
    record->cost = cost.sectors;
    record->ideal = cost.ideal;
}

BoxRecord *AccessLog::box(const Op &op, unsigned lane) {
    if (shared_seen_[op.index]++ >= most_) return nullptr;
    const OpDebug &debug = program_.debug[op.index];
    BoxRecord &record = boxes_.emplace_back();
    record.file = file_name(program_, debug.source);
    record.line = debug.source.line;
    if (is_header(program_, debug.source)) record.inlined = calls_to(program_, debug.source);
    record.ptx_line = debug.ptx_line;
    record.lane = lane;
    return &record;
}

namespace {

// Splits bytes into how lanes are grouped: a unit (4 bytes or the lane's own size), units in a pass over all banks,
// lanes of a phase.
struct Grouping {
    unsigned shift, slots, lanes;
    explicit Grouping(unsigned bytes)
        : shift(unsigned(std::countr_zero(std::max(bytes, 4u)))),
          slots(kLanes * 4 / std::max(bytes, 4u)),
          lanes(slots) {}
    unsigned active_phases(uint32_t exec) const {
        if (lanes == kLanes) return 1;
        unsigned phases = 0;
        for (unsigned lane = 0; lane < kLanes; lane += lanes) phases += (exec >> lane & ((1u << lanes) - 1)) != 0;
        return phases;
    }
};

// Whether each lane and its partner read one place, where both take part.
bool partners_agree(const uint32_t *address, uint32_t exec, unsigned apart) {
    uint32_t differ = 0, partners = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        differ |= uint32_t(address[i] != address[i ^ apart]) << i;
        partners |= (exec >> (i ^ apart) & 1) << i;
    }
    return !(differ & exec & partners);
}

}  // namespace

// When two phases go as one was measured on an H200 (2026-11-30): one warp's loads of 8 and 16 bytes, 632 patterns of
// addresses and of lanes that take part, each by the counter l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld; the rule
// fits all (tests/simulator/recorded/H200-shared-loads.json). Stores and ldmatrix go as if there were none. Nsight
// Compute's figures by instruction (sm__sass_...) say otherwise where partners agree and banks conflict, where the
// halves of the warp differ, and where some lanes take no part.
SharedCost shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec, bool loads) {
    Grouping group(bytes);
    if (joins_phases(bytes, loads) && (partners_agree(address, exec, 1) || partners_agree(address, exec, 2)))
        group.lanes *= 2;
    const unsigned ideal = group.active_phases(exec);
    // Bank (within its phase) of every lane, and what that bank serves in this pass.
    uint32_t unit[kLanes], bank[kLanes], serves[kLanes];
    const uint32_t bank_mask = group.slots - 1, phase_mask = ~(group.lanes - 1);
    for (unsigned i = 0; i < kLanes; ++i) {
        unit[i] = address[i] >> group.shift;
        bank[i] = (unit[i] & bank_mask) | (i & phase_mask);
    }
    if (exec == kAllLanes) {
        for (unsigned i = 0; i < kLanes; ++i) serves[bank[i]] = unit[i];
        uint32_t waiting = 0;
        for (unsigned i = 0; i < kLanes; ++i) waiting |= uint32_t(serves[bank[i]] != unit[i]) << i;
        if (waiting == 0) return {ideal, ideal};
    }
    unsigned wavefronts = 0;
    while (exec) {
        wavefronts += group.active_phases(exec);
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            serves[bank[lane]] = unit[lane];
        }
        uint32_t waiting = 0;
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            waiting |= uint32_t(serves[bank[lane]] != unit[lane]) << lane;
        }
        exec = waiting;
    }
    return {wavefronts, ideal};
}

SharedCost atomic_shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec) {
    const Grouping group(bytes);
    uint8_t lanes[kLanes] = {};  // by phase and bank
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        ++lanes[(address[lane] >> group.shift & (group.slots - 1)) | (lane & ~(group.slots - 1))];
    }
    unsigned wavefronts = 0;
    for (unsigned first = 0; first < kLanes; first += group.slots) {
        wavefronts += *std::max_element(lanes + first, lanes + first + group.slots);
    }
    return {wavefronts, group.active_phases(exec)};
}

namespace {

GlobalCost cost_of(unsigned sectors, unsigned lanes, unsigned bytes) {
    return {sectors, (lanes * bytes + kSectorBytes - 1) / kSectorBytes};
}

// Keeps the distinct values of value[0..count) in front; returns how many there are.
unsigned keep_distinct(uint64_t *value, unsigned count) {
    constexpr unsigned kSlots = 64;
    uint64_t table[kSlots], used = 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t v = value[i];
        unsigned slot = unsigned(v * 0x9e3779b97f4a7c15ull >> 58);
        while ((used >> slot & 1) && table[slot] != v) slot = (slot + 1) % kSlots;
        if (used >> slot & 1) continue;
        used |= 1ull << slot;
        table[slot] = v;
        value[kept++] = v;
    }
    return kept;
}

}  // namespace

GlobalCost global_cost(const uint64_t *address, unsigned bytes, uint32_t exec) {
    // Lanes that take part, close together; what is left repeats the last one.
    uint64_t packed[kLanes];
    const uint64_t *a = address;
    if (exec != kAllLanes) {
        unsigned count = 0;
        for (uint32_t rest = exec; rest; rest &= rest - 1) packed[count++] = address[std::countr_zero(rest)];
        for (const uint64_t last = packed[count - 1]; count < kLanes; ++count) packed[count] = last;
        a = packed;
    }
    // Ascending addresses, as nearly all are: every change from one lane to the next is a new one.
    uint32_t falls = 0, sectors = 0, lanes = 0;
    for (unsigned i = 1; i < kLanes; ++i) {
        falls += a[i] < a[i - 1];
        lanes += a[i] != a[i - 1];
        sectors += (a[i] ^ a[i - 1]) >= kSectorBytes;
    }
    if (falls == 0) return cost_of(sectors + 1, lanes + 1, bytes);
    if (a != packed) {
        for (unsigned i = 0; i < kLanes; ++i) packed[i] = a[i];
    }
    const unsigned distinct = keep_distinct(packed, kLanes);
    for (unsigned i = 0; i < distinct; ++i) packed[i] /= kSectorBytes;
    return cost_of(keep_distinct(packed, distinct), distinct, bytes);
}

}  // namespace warpsim
