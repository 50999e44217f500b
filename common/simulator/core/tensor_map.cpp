#include "core/tensor_map.h"

#include <cstring>
#include <type_traits>

namespace warpsim {
namespace {

using std::to_string;

constexpr uint64_t kMostElements = 1ull << 32;
constexpr uint64_t kStrideLimit = 1ull << 40;
constexpr uint32_t kMostBoxElements = 256, kMostStep = 8;
constexpr uint64_t kBoxBytesLimit = 256 * 1024;
constexpr uint32_t kLeastInterleaved = 3;  // dimensions

struct TypeInfo {
    const char *name;
    uint8_t bytes;
    bool is_float;
};
constexpr TypeInfo kTypes[] = {{"u8", 1, false},     {"u16", 2, false}, {"u32", 4, false},    {"s32", 4, false},
                               {"u64", 8, false},    {"s64", 8, false}, {"f16", 2, true},     {"f32", 4, true},
                               {"f64", 8, true},     {"bf16", 2, true}, {"f32.ftz", 4, true}, {"tf32", 4, true},
                               {"tf32.ftz", 4, true}};
static_assert(std::size(kTypes) == size_t(TensorType::count_));

// The 128 bytes. Sizes are kept less one: 2^32 is possible, 0 is not.
struct Encoded {
    uint64_t address;
    uint64_t stride[kMostDimensions - 1];
    uint32_t size_less_one[kMostDimensions];
    uint32_t box[kMostDimensions];
    uint8_t step[kMostDimensions], dimensions, type, swizzle, fill, interleave;
    uint8_t unused[30];
    uint64_t sum;  // of all before it
};
static_assert(sizeof(Encoded) == kTensorMapBytes && std::is_trivially_copyable_v<Encoded>);

// FNV-1a: other bytes, zeros too, do not have it by chance.
uint64_t sum_of(const Encoded &encoded) {
    unsigned char bytes[sizeof encoded];
    std::memcpy(bytes, &encoded, sizeof encoded);
    uint64_t sum = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < offsetof(Encoded, sum); ++i) sum = (sum ^ bytes[i]) * 0x100000001b3ull;
    return sum;
}

std::string in_dimension(unsigned d) {
    return " in dimension " + to_string(d);
}

}  // namespace

uint32_t TensorMap::element_bytes() const {
    return kTypes[size_t(type)].bytes;
}

uint32_t TensorMap::pitch() const {
    return interleaved() ? 8u << unsigned(interleave) : element_bytes();
}

uint32_t TensorMap::step_of(unsigned dimension) const {
    return dimension || interleaved() ? step[dimension] : 1;
}

uint32_t TensorMap::count(unsigned dimension) const {
    if (interleaved() && dimension + 2 == dimensions) return 1;
    return (box[dimension] + step_of(dimension) - 1) / step_of(dimension);
}

uint64_t TensorMap::box_bytes() const {
    uint64_t bytes = pitch();
    for (unsigned d = 0; d < dimensions; ++d) bytes *= count(d);
    return bytes;
}

const char *tensor_type_name(TensorType type) {
    return kTypes[size_t(type)].name;
}

bool is_float(TensorType type) {
    return kTypes[size_t(type)].is_float;
}

uint32_t swizzle_bytes(TensorSwizzle swizzle) {
    return swizzle == TensorSwizzle::none ? 0 : 16u << unsigned(swizzle);
}

uint32_t swizzled(TensorSwizzle swizzle, uint32_t address) {
    const uint32_t rows = (1u << unsigned(swizzle)) - 1;  // their number, modulo 1, 2, 4 or 8
    return address ^ (address >> 7 & rows) << 4;
}

std::string tensor_map_fault(const TensorMap &m) {
    if (m.dimensions == 0 || m.dimensions > kMostDimensions)
        return "it has " + to_string(m.dimensions) + " dimensions, and 1 to 5 are possible";
    if (m.interleaved() && m.dimensions < kLeastInterleaved)
        return "it is interleaved and has " + to_string(m.dimensions) + " dimensions: 3 to 5 are possible then";
    const bool wide = m.interleave == TensorInterleave::bytes_32;
    if (wide && m.swizzle != TensorSwizzle::bytes_32)
        return "slices of 32 bytes (CU_TENSOR_MAP_INTERLEAVE_32B) have a swizzle of 32 bytes, and no other";
    const uint64_t granularity = wide ? m.pitch() : kGranularity;
    if (m.address % granularity) return "the tensor's address is no multiple of " + to_string(granularity);
    for (unsigned d = 0; d < m.dimensions; ++d) {
        if (m.size[d] == 0 || m.size[d] > kMostElements)
            return "the tensor has " + to_string(m.size[d]) + " elements" + in_dimension(d) +
                   ", and 1 to 2^32 are possible";
        if (d && (m.stride[d] % granularity || m.stride[d] >= kStrideLimit))
            return "the stride" + in_dimension(d) + " (globalStrides[" + to_string(d - 1) + "]) is " +
                   to_string(m.stride[d]) + " bytes: it must be a multiple of " + to_string(granularity) +
                   " below 2^40";
        if (m.box[d] == 0 || m.box[d] > kMostBoxElements)
            return "the box has " + to_string(m.box[d]) + " elements" + in_dimension(d) + ", and 1 to 256 are possible";
        if (m.step[d] == 0 || m.step[d] > kMostStep)
            return "the element stride" + in_dimension(d) + " is " + to_string(m.step[d]) + ", and 1 to 8 are possible";
    }
    const uint32_t row = m.box[0] * m.element_bytes(), span = swizzle_bytes(m.swizzle);
    const auto rows = [&] {
        return "a row of the box has " + to_string(row) + " bytes (" + to_string(m.box[0]) + " of " +
               tensor_type_name(m.type) + ")";
    };
    if (row % kGranularity) return rows() + ", which is no multiple of 16";
    if (!m.interleaved() && span && row > span)
        return rows() + ", and the swizzle takes rows of " + to_string(span) + " at most";
    if (m.box_bytes() >= kBoxBytesLimit) return "the box has " + to_string(m.box_bytes()) + " bytes: no block holds it";
    if (m.fill == TensorFill::nan && !is_float(m.type))
        return std::string("elements of ") + tensor_type_name(m.type) + " cannot be filled with NaN";
    return "";
}

void encode_tensor_map(const TensorMap &m, std::byte *to) {
    Encoded e;
    std::memset(&e, 0, sizeof e);
    e.address = m.address;
    for (unsigned d = 0; d < kMostDimensions; ++d) {
        if (d) e.stride[d - 1] = m.stride[d];
        e.size_less_one[d] = uint32_t(m.size[d] - 1);
        e.box[d] = m.box[d];
        e.step[d] = uint8_t(m.step[d]);
    }
    e.dimensions = uint8_t(m.dimensions);
    e.type = uint8_t(m.type);
    e.swizzle = uint8_t(m.swizzle);
    e.fill = uint8_t(m.fill);
    e.interleave = uint8_t(m.interleave);
    e.sum = sum_of(e);
    std::memcpy(to, &e, sizeof e);
}

bool decode_tensor_map(const std::byte *from, TensorMap &m) {
    Encoded e;
    std::memcpy(&e, from, sizeof e);
    const bool known = e.type < uint8_t(TensorType::count_) && e.swizzle < uint8_t(TensorSwizzle::count_) &&
                       e.fill < uint8_t(TensorFill::count_) && e.interleave < uint8_t(TensorInterleave::count_);
    if (!known || e.sum != sum_of(e)) return false;
    m.address = e.address;
    for (unsigned d = 0; d < kMostDimensions; ++d) {
        m.stride[d] = d ? e.stride[d - 1] : 0;
        m.size[d] = uint64_t(e.size_less_one[d]) + 1;
        m.box[d] = e.box[d];
        m.step[d] = e.step[d];
    }
    m.dimensions = e.dimensions;
    m.type = TensorType(e.type);
    m.swizzle = TensorSwizzle(e.swizzle);
    m.fill = TensorFill(e.fill);
    m.interleave = TensorInterleave(e.interleave);
    return true;
}

}  // namespace warpsim
