// How lanes' addresses become places in the host's memory.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "core/op_formats.h"
#include "core/warp.h"
#include "counters/accesses.h"
#include "hazard/shared_shadow.h"

namespace warpsim {

// What one lane moves: `count` elements of `bytes`, each in a register of `register_bytes` (1, 2, 4 or 8).
struct AccessShape {
    unsigned bytes = 4, register_bytes = 4, count = 1;
    bool sign = false;  // loads: extend the sign into a wider register
};

// Inactive lanes repeat an active one's address, so that all 32 can be looked at without a branch.
template <class T>
inline void repeat_active(T *address, uint32_t exec) {
    const T any = address[std::countr_zero(exec)];
    for (unsigned i = 0; i < kLanes; ++i) address[i] = (exec >> i & 1) ? address[i] : any;
}

inline void lane_addresses(const Warp &w, const Op &op, uint64_t *address) {
    const uint64_t offset = uint64_t(op.imm);
    if (op.a == kNoSlot) {
        for (unsigned i = 0; i < kLanes; ++i) address[i] = offset;
    } else if (op.extra & kBase32) {
        const uint32_t *base = w.lanes<uint32_t>(op.a);
        for (unsigned i = 0; i < kLanes; ++i) address[i] = base[i] + offset;
    } else {
        const uint64_t *base = w.lanes<uint64_t>(op.a);
        for (unsigned i = 0; i < kLanes; ++i) address[i] = base[i] + offset;
    }
}

enum class Intent : uint8_t { read, write, atomic };

// Turns addresses into host addresses (as integers), in place, and returns the lanes that may go on: all of exec unless
// a fault was reported and the launch goes on (WARPSIM_HAZARDS=warn). Inactive lanes' entries are valid afterwards if
// any lane is. alignment: a power of two, 0: bytes.
uint32_t resolve_global(Warp &, const Op &, MemorySpace, Intent, uint64_t *address, unsigned bytes, uint32_t exec,
                        unsigned alignment = 0);
uint32_t resolve_local(Warp &, const Op &, Intent, uint64_t *address, unsigned bytes, uint32_t exec);
uint32_t resolve_param(Warp &, const Op &, Intent, uint64_t *address, unsigned bytes, uint32_t exec);
// Shared offsets, in bounds and aligned; the entries stay offsets.
uint32_t check_shared(Warp &, const Op &, Intent, const uint64_t *address, uint32_t *offset, unsigned bytes,
                      uint32_t exec);

// Of an op that names its variable (Block::shared_rooms) and offsets that are in the block's memory: reports lanes that
// lie outside of the variable. Returns the others.
uint32_t check_variable(Warp &, const Op &, Intent, uint32_t *offset, unsigned bytes, uint32_t exec);

// Lanes of exec by where their generic address leads.
struct Windows {
    uint32_t global = 0, shared = 0, local = 0, param = 0;
};
Windows split_generic(const uint64_t *address, uint32_t exec);
inline void remove_window(uint64_t *to, const uint64_t *address, uint64_t window) {
    for (unsigned i = 0; i < kLanes; ++i) to[i] = address[i] - window;
}

// Reports what is wrong with lanes of exec: a cold path. Returns the lanes with nothing wrong.
uint32_t shared_fault(Warp &, const Op &, Intent, const uint64_t *address, unsigned bytes, uint32_t exec);

// "ld.global.f32 reads 4 bytes at 0x10"
std::string access_text(const Warp &, const Op &, Intent, uint64_t address, unsigned bytes);

// After the accesses of lanes in exec at generic addresses: locks and flags, for the race detector.
void synchronize_lanes(Warp &, const Op &, const uint64_t *address, uint64_t window, bool reads, bool writes,
                       uint32_t exec);

}  // namespace warpsim
