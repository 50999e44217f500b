// The matrix descriptor of wgmma: where in shared memory an operand's tile lies, and how.
#pragma once

#include <cstdint>

namespace warpsim {

// Bits 0-13 the start address, 16-29 and 32-45 the leading and the stride byte offset, all in units of 16 bytes; 49-51
// the base offset; 62-63 the layout.
struct WgmmaDescriptor {
    uint32_t start = 0, leading = 0, stride = 0;  // bytes
    uint32_t base_offset = 0;  // rows of 128 bytes by which the swizzle's pattern begins behind its usual places
    uint32_t row_bytes = 16;   // S, the bytes of a swizzled row: 128, 64 or 32; 16: no swizzle

    static constexpr WgmmaDescriptor unpack(uint64_t bits) {
        constexpr uint32_t kRowBytes[4] = {16, 128, 64, 32};
        const auto field = [&](unsigned shift) { return uint32_t(bits >> shift & 0x3fff) << 4; };
        return {field(0), field(16), field(32), uint32_t(bits >> 49 & 7), kRowBytes[bits >> 62]};
    }

    // Of the 16 bytes that begin at element (major, k), counted in chunks of 16 bytes along the contiguous direction:
    // K-major: row `major`, chunk `chunk` of k. MN-major: row `k`, chunk `chunk` of m or n.
    constexpr uint32_t k_major(uint32_t major, uint32_t chunk) const {
        if (row_bytes == 16) return start + major / 8 * stride + major % 8 * 16 + chunk * leading;
        return swizzled(start + major / 8 * stride + major % 8 * row_bytes + chunk * 16);
    }
    constexpr uint32_t mn_major(uint32_t k, uint32_t chunk) const {
        if (row_bytes == 16) return start + chunk * stride + k / 8 * leading + k % 8 * 16;
        const uint32_t panel = chunk * 16 / row_bytes, within = chunk * 16 % row_bytes;
        return swizzled(start + panel * leading + k / 8 * stride + k % 8 * row_bytes + within);
    }
    // Bits of the address: 4 to 6 ^= 7 to 9 in rows of 128 bytes, 4 and 5 ^= 7 and 8 in rows of 64, 4 ^= 7 in rows
    // of 32; from those the base offset is subtracted before (as an H100 has it).
    constexpr uint32_t swizzled(uint32_t address) const {
        return address ^ ((((address >> 7) - base_offset) & (row_bytes / 16 - 1)) << 4);
    }
    // Bytes from a place where the pattern begins, by the base offset, to the row of the tile's first element: 0 in a
    // tile that is right. The pattern takes 8 rows.
    constexpr uint32_t off_pattern() const {
        return ((start & ~(row_bytes - 1)) - (base_offset << 7)) & (8 * row_bytes - 1);
    }
};

}  // namespace warpsim
