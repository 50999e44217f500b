// Tensor maps that a kernel changes: tensormap.replace, tensormap.cp_fenceproxy and the fence that must stand between a
// change and the first copy that uses the map.
//
// The asynchronous proxy may still have the old 128 bytes: a block that has changed a map in global memory and uses it
// without fence.proxy.tensormap::generic.acquire is reported (check_map_changes).
#pragma once

#include <cstdint>

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

enum class MapField : uint8_t { address, dimensions, box, size, stride, step, type, swizzle, fill, interleave };

// Op::extra of tensormap.replace: the map's address is in a and imm, the new value in slot b (kNoSlot: `value`).
struct MapForm {
    MapField field = MapField::address;
    uint8_t dimension = 0;  // of box, size, stride (from 1 on) and step
    uint8_t value = 0;      // of type, swizzle, fill and interleave, as core/tensor_map.h numbers them
    MemorySpace space : 4 = MemorySpace::generic;
    bool base32 : 1 = false;
};
static_assert(sizeof(MapForm) <= sizeof(Op::extra));

void exec_map_replace(Warp &, const Op &);
// tensormap.cp_fenceproxy: to (a and imm) from what the list says, both generic or offsets as their spaces are.
enum MapCopySlot : uint32_t { kMapSource, kMapSourceOffset, kMapSourceBase32, kMapCopyListLength };
void exec_map_copy(Warp &, const Op &);
void exec_map_acquire(Warp &, const Op &);  // fence.proxy.tensormap::generic.acquire

// Is the map at this global address one that the block has changed since its last acquire? Reported; false then.
bool check_map_changes(Warp &, const Op &, unsigned lane, uint64_t address);

}  // namespace warpsim
