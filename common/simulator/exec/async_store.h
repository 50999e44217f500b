// st.async and red.async: registers of a lane go to shared memory of the cluster in the background, and the bytes
// complete to an mbarrier of the same block.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

struct AsyncStoreForm {
    ptx::Type type = ptx::Type::none;  // of a reduction
    BulkOperation operation = BulkOperation::none;
    uint8_t bytes : 4 = 4, count : 4 = 1;  // of an element, and how many of them
    bool generic : 1 = false, base32 : 1 = false, mbarrier_base32 : 1 = false;
};
static_assert(sizeof(AsyncStoreForm) <= sizeof(Op::extra));

// The list: slot of the mbarrier's base and its offset (low and high half), then the elements' slots.
inline constexpr uint32_t kAsyncStoreValues = 3;

void exec_async_store(Warp &, const Op &);
void exec_async_reduction(Warp &, const Op &);

}  // namespace warpsim
