#include "machine/completions.h"

#include "core/text.h"

namespace warpsim {
namespace {

constexpr uint32_t kTileK = 32;  // bytes of k
constexpr size_t kMostTiles = 4096;

// Steps along k (or m and n, where those are contiguous) lead to another place in the tile's first row, and steps of 8
// rows to another repeat of the pattern: both are right. What a step of single rows leads to is not.
std::string fault_of(const WgmmaDescriptor &d, bool mn_major) {
    if (d.row_bytes == 16)
        return d.base_offset ? "has a base offset and no swizzle: there is no pattern that could be offset" : "";
    if (!mn_major && d.start % kTileK)
        return "begins 16 bytes off: inside a swizzled row the tiles of k begin at multiples of 32 bytes";
    if (!d.off_pattern()) return "";
    const std::string row = std::to_string(d.row_bytes), repeat = std::to_string(8 * d.row_bytes);
    std::string text = "begins at " + hex(d.start) + ", in row " + std::to_string(d.start / d.row_bytes % 8) +
                       " of the 8 rows of " + row + " bytes after which the swizzle repeats, ";
    text += d.base_offset ? "and its base offset " + std::to_string(d.base_offset) + " says something else"
                          : "and its base offset (bits 49 to 51) says 0";
    return text + ": a tile begins at a multiple of " + repeat + " bytes (alignas(" + repeat +
           ")), or its base offset is bits 7 to 9 of its address";
}

WgmmaTile make(const WgmmaDescriptor &d, uint32_t major, bool mn_major, uint32_t element_bytes) {
    WgmmaTile tile;
    tile.mn_major = mn_major;
    tile.lines = mn_major ? kTileK / element_bytes : major;
    tile.chunks = (mn_major ? major * element_bytes : kTileK) / kChunkBytes;
    tile.fault = fault_of(d, mn_major);
    tile.right_for_copies = !d.base_offset && d.row_bytes != 16 && (mn_major || d.start % kTileK == 0);
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
