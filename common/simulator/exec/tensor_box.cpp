#include "exec/tensor_box.h"

#include <algorithm>
#include <cstring>

namespace warpsim {
namespace {

constexpr uint32_t kChunk = 16;  // what a swizzle moves as a whole
constexpr unsigned kSector = 32;

// NaN, as many bytes as an element has. (Which of them NVIDIA's hardware takes is not said.)
uint64_t nan_bits(TensorType type) {
    switch (type) {
        case TensorType::f64:
            return 0x7fffffffffffffffull;
        case TensorType::f32:
            return 0x7fffffffull;
        default:
            return 0x7fffull;
    }
}

}  // namespace

TensorBox make_box(const TensorMap &map, const Coordinates &from) {
    const uint32_t element = map.element_bytes();
    TensorBox box;
    box.bytes = uint32_t(map.box_bytes());
    const int64_t size = int64_t(map.size[0]), width = int64_t(map.box[0]);
    const int64_t begin = std::max<int64_t>(from[0], 0), end = std::min(from[0] + width, size);
    if (begin >= end) return box;
    const uint32_t skipped = uint32_t(begin - from[0]) * element, bytes = uint32_t(end - begin) * element;
    uint32_t rows = 1;
    for (unsigned d = 1; d < map.dimensions; ++d) rows *= map.count(d);
    box.rows.reserve(rows);
    box.first = ~0ull;
    std::array<uint32_t, kMostDimensions> index{};
    for (uint32_t row = 0; row < rows; ++row) {
        uint64_t address = map.address + uint64_t(begin) * element;
        bool inside = true;
        for (unsigned d = 1; d < map.dimensions; ++d) {
            const int64_t at = from[d] + int64_t(index[d]) * map.step[d];
            inside = inside && at >= 0 && at < int64_t(map.size[d]);
            address += uint64_t(at) * map.stride[d];
        }
        if (inside) {
            box.rows.push_back({row * uint32_t(width) * element + skipped, bytes, address, nullptr});
            box.first = std::min(box.first, address);
            box.last = std::max(box.last, address + bytes - 1);
            box.sectors += (address + bytes - 1) / kSector - address / kSector + 1;
        }
        for (unsigned d = 1; d < map.dimensions && ++index[d] == map.count(d); ++d) index[d] = 0;
    }
    return box;
}

std::vector<std::byte> load_box(const TensorMap &map, const TensorBox &box, uint32_t address) {
    std::vector<std::byte> packed(box.bytes);
    if (map.fill == TensorFill::nan) {
        const uint64_t nan = nan_bits(map.type);
        for (uint32_t at = 0; at < box.bytes; at += map.element_bytes())
            std::memcpy(packed.data() + at, &nan, map.element_bytes());
    }
    for (const BoxRow &row : box.rows) std::memcpy(packed.data() + row.at, row.host, row.bytes);
    if (map.swizzle == TensorSwizzle::none) return packed;
    std::vector<std::byte> there(box.bytes);
    for (uint32_t at = 0; at < box.bytes; at += kChunk)
        std::memcpy(there.data() + (swizzled(map.swizzle, address + at) - address), packed.data() + at, kChunk);
    return there;
}

std::vector<BoxPiece> pieces_of(const TensorMap &map, const TensorBox &box, uint32_t address) {
    std::vector<BoxPiece> pieces;
    const bool whole = map.swizzle == TensorSwizzle::none;
    for (const BoxRow &row : box.rows) {
        for (uint32_t done = 0; done < row.bytes;) {
            const uint32_t at = row.at + done;
            const uint32_t bytes = whole ? row.bytes : std::min(kChunk - at % kChunk, row.bytes - done);
            const uint32_t there = swizzled(map.swizzle, address + at) - address;
            pieces.push_back({there, bytes, row.global + done, row.host ? row.host + done : nullptr});
            done += bytes;
        }
    }
    return pieces;
}

}  // namespace warpsim
