// The undefined bits of a frame's registers, and where each lane's came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/dataflow.h"
#include "core/warp.h"

namespace warpsim {

// The bits lie as the registers do: a set bit at the same place says that the register's bit is undefined. Constants
// and special registers are always defined.
class RegisterShadow {
  public:
    explicit RegisterShadow(uint32_t frame_bytes);  // everything is defined
    std::byte *bits() const { return bits_; }
    uint32_t bytes() const { return bytes_; }

    // A lane's value, of at most 64 bits (of 128-bit lanes the half).
    static uint64_t get(const std::byte *regs, OperandSlot, unsigned lane, unsigned half = 0);
    static void put(std::byte *regs, OperandSlot, unsigned lane, uint64_t value, unsigned half = 0);

    uint32_t undefined(OperandSlot) const;  // lanes with any undefined bit
    void define(OperandSlot, uint32_t lanes);
    void undefine(OperandSlot, uint32_t lanes);  // all bits
    bool all_defined() const;
    void clear();  // everything is defined

    // Of one lane's undefined bits: where they came from, an id of Definedness.
    uint32_t *origins(uint32_t slot) const {
        const uint32_t row = slot / 4;
        return origins_.get() + (size_t(row % kLanes) * spread_ + row / kLanes) * kLanes;
    }

    uint32_t carry = 0;  // lanes whose condition code is undefined

  private:
    uint32_t bytes_;
    uint32_t spread_;  // 32-bit registers that the frame has room for, at least
    std::unique_ptr<std::byte[]> memory_;
    std::byte *bits_;  // in it, aligned as registers are
    // A row of lanes for each slot / 4; says something only where a bit is set. Rows 0, 32, 64, ... lie side by side:
    // of a 32-bit register nothing but the first is used, and what is never touched costs no memory.
    std::unique_ptr<uint32_t[]> origins_;
};

// All ones in the width of a lane.
inline uint64_t lane_ones(uint32_t bytes) {
    return bytes == 0 ? 1 : bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}

}  // namespace warpsim
