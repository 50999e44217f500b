#include "instructions/bulk_copy/bulk_copy.h"

#include <algorithm>
#include <cstring>

namespace warpsim {
namespace {

constexpr uint32_t kChunk = 16;  // what a swizzle moves as a whole
constexpr unsigned kSector = 32;

// NaN in every type of float. (An H100 fills tensors of f32 and tf32 so.)
constexpr uint64_t kNan = 0x7ff77ff77ff77ff7ull;

// What a load makes of a number of fp32 in a map of tf32, with or without ftz, on an H100: to 10 bits behind the point,
// to nearest, ties to even, subnormal numbers like others; every NaN is one. Stores change nothing, and f32.ftz
// changes nothing either way.
uint32_t rounded_to_tf32(uint32_t bits) {
    constexpr uint32_t kInfinity = 0x7f800000, kTf32Nan = 0x7fffe000, kDropped = 13;
    if ((bits & ~(1u << 31)) > kInfinity) return kTf32Nan;
    const uint32_t half_less_one = (1u << (kDropped - 1)) - 1, odd = bits >> kDropped & 1;
    return (bits + half_less_one + odd) >> kDropped << kDropped;
}

void round_to_tf32(std::byte *numbers, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t bits;
        std::memcpy(&bits, numbers + at, sizeof bits);
        bits = rounded_to_tf32(bits);
        std::memcpy(numbers + at, &bits, sizeof bits);
    }
}

// Those elements of a row of the box that lie inside the tensor: [begin, end).
struct Inside {
    uint32_t begin = 0, end = 0;
};
Inside inside_of(const TensorMap &map, int64_t from) {
    const int64_t step = map.step_of(0), count = map.count(0), size = int64_t(map.size[0]);
    const int64_t begin = from < 0 ? (-from + step - 1) / step : 0;
    const int64_t end = size > from ? (size - from + step - 1) / step : 0;
    return begin < std::min(end, count) ? Inside{uint32_t(begin), uint32_t(std::min(end, count))} : Inside{};
}

}  // namespace

TensorBox make_box(const TensorMap &map, const Coordinates &from) {
    const uint32_t pitch = map.pitch(), step = map.step_of(0);
    TensorBox box;
    box.bytes = uint32_t(map.box_bytes());
    const auto [begin, end] = inside_of(map, from[0]);
    if (begin == end) return box;
    const uint32_t row_bytes = map.count(0) * pitch;
    const uint32_t piece = step == 1 ? end - begin : 1;  // elements that lie side by side in global memory
    uint32_t rows = 1;
    for (unsigned d = 1; d < map.dimensions; ++d) rows *= map.count(d);
    box.rows.reserve(rows * ((end - begin) / piece));
    box.first = ~0ull;
    std::array<uint32_t, kMostDimensions> index{};
    for (uint32_t row = 0; row < rows; ++row) {
        uint64_t address = map.address + uint64_t(from[0] + int64_t(begin) * step) * pitch;
        bool inside = true;
        for (unsigned d = 1; d < map.dimensions; ++d) {
            const int64_t at = from[d] + int64_t(index[d]) * map.step[d];
            inside = inside && at >= 0 && at < int64_t(map.size[d]);
            address += uint64_t(at) * map.stride[d];
        }
        for (uint32_t i = begin; inside && i < end; i += piece, address += uint64_t(step) * pitch) {
            const uint32_t bytes = piece * pitch;
            box.rows.push_back({row * row_bytes + i * pitch, bytes, address, nullptr});
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
        for (uint32_t at = 0; at < box.bytes; at += sizeof kNan) std::memcpy(packed.data() + at, &kNan, sizeof kNan);
    }
    const bool to_tf32 = map.type == TensorType::tf32 || map.type == TensorType::tf32_ftz;
    for (const BoxRow &row : box.rows) {
        std::memcpy(packed.data() + row.at, row.host, row.bytes);
        if (to_tf32) round_to_tf32(packed.data() + row.at, row.bytes);
    }
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
