// What a wgmma reads of shared memory: a tile by its descriptor, in chunks of 16 bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/wgmma_descriptor.h"
#include "hazard/shared_tile.h"

namespace warpsim {

// A tile of `lines` lines of `chunks` chunks: K-major m or n lines of k, MN-major k lines of m or n.
struct WgmmaTile {
    std::shared_ptr<const SharedTile> places;  // line by line
    uint32_t lines = 0, chunks = 0;
    bool mn_major = false;
    std::string fault;  // what is wrong with the descriptor, if anything
    // The fault is that the tile does not begin where the swizzle's pattern does, and its base offset is 0: what copies
    // have brought there is right all the same, for they swizzle by the address, as wgmma does then.
    bool right_for_copies = false;
};

// Tiles by descriptor and shape: a kernel's loops come back to the same ones.
class WgmmaTiles {
  public:
    // major: of m or n; k_bytes: of the tile along k, 32.
    std::shared_ptr<const WgmmaTile> find(uint64_t descriptor, uint32_t major, bool mn_major, uint32_t element_bytes);

  private:
    std::map<std::tuple<uint64_t, uint32_t, bool>, std::shared_ptr<const WgmmaTile>> tiles_;
};

}  // namespace warpsim
