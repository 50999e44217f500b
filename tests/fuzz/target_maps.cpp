// Hostile arguments for the encoder of tensor maps, and boxes of the maps that it takes: what a box touches in shared
// and in global memory must stay where the map says.
//
// An input is a text of numbers: type, interleave, swizzle, promotion, fill, rank, address, 5 sizes, 4 strides, 5
// boxes, 5 steps, 5 coordinates, the address in shared memory; those that lack are 0.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/tensor_map.h"
#include "instructions/bulk_copy/bulk_copy.h"
#include "fuzz.h"

namespace fuzz {
namespace {

using namespace warpsim;

using Encode = CUresult (*)(CUtensorMap *, unsigned, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                            const cuuint32_t *, const cuuint32_t *, unsigned, unsigned, unsigned, unsigned);

[[noreturn]] void wrong(const Bytes &input, const char *why) {
    std::fprintf(stderr, "fuzz: %s: %s\n", why, input.c_str());
    std::abort();
}

class Numbers {
  public:
    explicit Numbers(const Bytes &input) : at_(input.c_str()) {}
    uint64_t next() {
        char *end;
        const uint64_t number = std::strtoull(at_, &end, 10);
        if (end == at_ && *at_) ++end;  // whatever else stands there
        at_ = end;
        return number;
    }
    template <class T>
    void fill(T *to, unsigned count) {
        for (unsigned i = 0; i < count; ++i) to[i] = static_cast<T>(next());
    }

  private:
    const char *at_;
};

void check_box(const Bytes &input, const TensorMap &map, const Coordinates &at, uint32_t shared) {
    TensorBox box = make_box(map, at);
    if (box.bytes != map.box_bytes()) wrong(input, "the box has other bytes than its map says");
    // Narrower rows than the swizzle are refused before a box is copied.
    if (!map.interleaved() && map.box[0] * map.element_bytes() < swizzle_bytes(map.swizzle)) return;
    std::vector<std::byte> row(map.count(0) * map.pitch(), std::byte{1});
    uint64_t inside = 0;
    for (BoxRow &part : box.rows) {
        if (part.bytes > row.size() || part.at > box.bytes || part.bytes > box.bytes - part.at)
            wrong(input, "a row leads out of the box");
        part.host = row.data();
        inside += part.bytes;
    }
    if (load_box(map, box, shared).size() != box.bytes) wrong(input, "a load has other bytes than the box");
    std::vector<bool> met(box.bytes);
    for (const BoxPiece &piece : pieces_of(map, box, shared)) {
        if (piece.at > box.bytes || piece.bytes > box.bytes - piece.at) wrong(input, "a piece leads out of the box");
        for (uint32_t i = 0; i < piece.bytes; ++i) {
            if (met[piece.at + i]) wrong(input, "two pieces overlap");
            met[piece.at + i] = true;
        }
        inside -= piece.bytes;
    }
    if (inside) wrong(input, "the pieces are not the rows");
}

void run(const Bytes &input) {
    Numbers numbers(input);
    unsigned kinds[5];
    uint32_t rank, box[5], step[5], at[5];
    uint64_t address, size[5], stride[4];
    numbers.fill(kinds, 5);
    numbers.fill(&rank, 1);
    numbers.fill(&address, 1);
    numbers.fill(size, 5);
    numbers.fill(stride, 4);
    numbers.fill(box, 5);
    numbers.fill(step, 5);
    numbers.fill(at, 5);
    const uint32_t shared = static_cast<uint32_t>(numbers.next()) % 2048 / kBoxAlignment * kBoxAlignment;
    // As numbers: to make an enumerator of any number is undefined.
    const auto encode = reinterpret_cast<Encode>(&cuTensorMapEncodeTiled);
    alignas(64) CUtensorMap map;
    std::memset(&map, 0xa5, sizeof map);
    if (encode(&map, kinds[0], rank, reinterpret_cast<void *>(address), size, stride, box, step, kinds[1], kinds[2],
               kinds[3], kinds[4]) != CUDA_SUCCESS)
        return;
    TensorMap decoded;
    if (!decode_tensor_map(reinterpret_cast<const std::byte *>(&map), decoded))
        wrong(input, "a map that was encoded is none");
    if (!tensor_map_fault(decoded).empty()) wrong(input, "the encoder took a map with a fault");
    Coordinates from{};
    for (unsigned d = 0; d < kMostDimensions; ++d) from[d] = static_cast<int32_t>(at[d]);
    check_box(input, decoded, from, shared);
}

}  // namespace

const Target kMaps = {"maps", "txt", run, mutate_ptx, nullptr};

}  // namespace fuzz
