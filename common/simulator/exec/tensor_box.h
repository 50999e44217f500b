// A box of a tensor: where its rows lie in global memory and where in shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor_map.h"

namespace warpsim {

// A stretch of the box along dimension 0 that lies inside the tensor.
struct BoxRow {
    uint32_t at = 0;  // bytes into the packed box, before the swizzle
    uint32_t bytes = 0;
    uint64_t global = 0;  // device address
    std::byte *host = nullptr;
};

struct TensorBox {
    uint32_t bytes = 0;            // all of it, what lies outside of the tensor too
    std::vector<BoxRow> rows;      // those (parts) that lie inside
    uint64_t first = 0, last = 0;  // lowest and highest device address of rows, both inclusive
    uint64_t sectors = 0;          // of 32 bytes that the rows touch, each row by itself
};

using Coordinates = std::array<int32_t, kMostDimensions>;

// A map without fault (tensor_map_fault).
TensorBox make_box(const TensorMap &, const Coordinates &);

// The bytes of shared memory that a load of the box writes at `address`, a multiple of kBoxAlignment: rows and what
// fills the rest, swizzled. Rows have their host addresses.
std::vector<std::byte> load_box(const TensorMap &, const TensorBox &, uint32_t address);

// A piece of a row that is contiguous in shared memory, too: bytes [at, at + bytes) of the box as it lies there.
struct BoxPiece {
    uint32_t at = 0, bytes = 0;
    uint64_t global = 0;
    std::byte *host = nullptr;
};
std::vector<BoxPiece> pieces_of(const TensorMap &, const TensorBox &, uint32_t address);

}  // namespace warpsim
