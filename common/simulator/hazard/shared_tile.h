// Places in shared memory that one instruction reads, in chunks of 16 bytes that need not lie side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace warpsim {

inline constexpr uint32_t kChunkBytes = 16;

struct SharedTile {
    std::vector<uint32_t> chunks;  // offsets, in the order in which the instruction wants them
    std::vector<bool> present;     // by chunk from `first` on
    uint32_t first = 0, end = 0;   // bytes: all chunks lie between

    void close() {
        first = *std::min_element(chunks.begin(), chunks.end());
        end = *std::max_element(chunks.begin(), chunks.end()) + kChunkBytes;
        present.assign((end - first) / kChunkBytes, false);
        for (uint32_t chunk : chunks) present[(chunk - first) / kChunkBytes] = true;
    }
    bool holds(uint32_t offset) const {
        return offset >= first && offset < end && present[(offset - first) / kChunkBytes];
    }
};

}  // namespace warpsim
