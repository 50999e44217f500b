#include "exec/wgmma_operands.h"

namespace warpsim {
namespace {

constexpr uint32_t kTileK = 32;  // bytes of k
constexpr size_t kMostTiles = 4096;

const char *fault_of(const WgmmaDescriptor &d, bool mn_major) {
    if (d.base_offset) return "has a base offset, which is not simulated: tiles begin at multiples of 8 rows";
    if (!mn_major && d.row_bytes > 16 && d.start % kTileK)
        return "begins 16 bytes off: inside a swizzled row the tiles of k begin at multiples of 32 bytes";
    return nullptr;
}

WgmmaTile make(const WgmmaDescriptor &d, uint32_t major, bool mn_major, uint32_t element_bytes) {
    WgmmaTile tile;
    tile.mn_major = mn_major;
    tile.lines = mn_major ? kTileK / element_bytes : major;
    tile.chunks = (mn_major ? major * element_bytes : kTileK) / kChunkBytes;
    tile.fault = fault_of(d, mn_major);
    auto places = std::make_shared<SharedTile>();
    places->chunks.reserve(size_t(tile.lines) * tile.chunks);
    for (uint32_t line = 0; line < tile.lines; ++line)
        for (uint32_t chunk = 0; chunk < tile.chunks; ++chunk)
            places->chunks.push_back(mn_major ? d.mn_major(line, chunk) : d.k_major(line, chunk));
    places->close();
    tile.places = std::move(places);
    return tile;
}

}  // namespace

std::shared_ptr<const WgmmaTile> WgmmaTiles::find(uint64_t descriptor, uint32_t major, bool mn_major,
                                                  uint32_t element_bytes) {
    const auto key = std::make_tuple(descriptor, major * 8 + element_bytes, mn_major);
    const auto found = tiles_.find(key);
    if (found != tiles_.end()) return found->second;
    if (tiles_.size() >= kMostTiles) tiles_.clear();
    const WgmmaDescriptor d = WgmmaDescriptor::unpack(descriptor);
    return tiles_[key] = std::make_shared<const WgmmaTile>(make(d, major, mn_major, element_bytes));
}

}  // namespace warpsim
