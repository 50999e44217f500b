#include "definedness/registers.h"

#include <algorithm>
#include <cstring>

namespace warpsim {
namespace {

constexpr uintptr_t kAlignment = 64;

size_t size_of(OperandSlot s) {  // of its bits in all lanes
    return s.bytes ? s.bytes * kLanes : sizeof(uint32_t);
}

template <class T>
uint32_t lanes_with_bits(const std::byte *slot, unsigned halves) {
    const T *lanes = reinterpret_cast<const T *>(slot);
    T any = 0;  // most registers are defined
    for (unsigned i = 0; i < halves * kLanes; ++i) any |= lanes[i];
    if (!any) return 0;
    uint32_t found = 0;
    for (unsigned half = 0; half < halves; ++half)
        for (unsigned i = 0; i < kLanes; ++i) found |= uint32_t(lanes[half * kLanes + i] != 0) << i;
    return found;
}

}  // namespace

RegisterShadow::RegisterShadow(uint32_t frame_bytes)
    : bytes_(frame_bytes),
      spread_(frame_bytes / (4 * kLanes) + 1),
      memory_(std::make_unique<std::byte[]>(frame_bytes + kAlignment)),
      bits_(memory_.get() + (kAlignment - reinterpret_cast<uintptr_t>(memory_.get()) % kAlignment)),
      origins_(new uint32_t[size_t(spread_) * kLanes * kLanes]) {}

uint64_t RegisterShadow::get(const std::byte *regs, OperandSlot s, unsigned lane, unsigned half) {
    if (s.bytes == 0) {
        uint32_t lanes;
        std::memcpy(&lanes, regs + s.slot, sizeof lanes);
        return lanes >> lane & 1;
    }
    uint64_t value = 0;
    const unsigned step = std::min(s.bytes, 8u);
    std::memcpy(&value, regs + s.slot + (half * kLanes + lane) * step, step);
    return value;
}

void RegisterShadow::put(std::byte *regs, OperandSlot s, unsigned lane, uint64_t value, unsigned half) {
    if (s.bytes == 0) {
        uint32_t lanes;
        std::memcpy(&lanes, regs + s.slot, sizeof lanes);
        lanes = (lanes & ~(1u << lane)) | uint32_t(value & 1) << lane;
        std::memcpy(regs + s.slot, &lanes, sizeof lanes);
        return;
    }
    const unsigned step = std::min(s.bytes, 8u);
    std::memcpy(regs + s.slot + (half * kLanes + lane) * step, &value, step);
}

uint32_t RegisterShadow::undefined(OperandSlot s) const {
    const std::byte *slot = bits_ + s.slot;
    switch (s.bytes) {
        case 0: {
            uint32_t lanes;
            std::memcpy(&lanes, slot, sizeof lanes);
            return lanes;
        }
        case 1:
            return lanes_with_bits<uint8_t>(slot, 1);
        case 2:
            return lanes_with_bits<uint16_t>(slot, 1);
        case 4:
            return lanes_with_bits<uint32_t>(slot, 1);
        default:
            return lanes_with_bits<uint64_t>(slot, s.bytes / 8);
    }
}

void RegisterShadow::define(OperandSlot s, uint32_t lanes) {
    const unsigned halves = s.bytes == 16 ? 2 : 1;
    if (lanes == kAllLanes) {
        std::memset(bits_ + s.slot, 0, size_of(s));
        return;
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        for (unsigned half = 0; half < halves; ++half) put(bits_, s, unsigned(__builtin_ctz(rest)), 0, half);
}

void RegisterShadow::undefine(OperandSlot s, uint32_t lanes) {
    if (lanes == kAllLanes) {
        std::memset(bits_ + s.slot, 0xff, size_of(s));
        return;
    }
    const unsigned halves = s.bytes == 16 ? 2 : 1;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        for (unsigned half = 0; half < halves; ++half)
            put(bits_, s, unsigned(__builtin_ctz(rest)), lane_ones(s.bytes), half);
}

bool RegisterShadow::all_defined() const {
    uint64_t any = carry;
    const auto *words = reinterpret_cast<const uint64_t *>(bits_);
    for (size_t i = 0; i < bytes_ / 8; ++i) any |= words[i];
    return !any;
}

void RegisterShadow::clear() {
    std::memset(bits_, 0, bytes_);
    carry = 0;
}

}  // namespace warpsim
