// What the runtime says in other words: formats of arrays and textures by bits per channel, copies by their direction.
#pragma once

#include "driver/call.h"

namespace warpsim::driver {

// Throws Refusal: CUDA_ERROR_INVALID_VALUE for what is no format, CUDA_ERROR_NOT_SUPPORTED for one that is missing.
cudaChannelFormatDesc channels_of(CUarray_format, unsigned channels);

struct ArrayFormat {
    CUarray_format format;
    unsigned channels;
};
ArrayFormat format_of(const cudaChannelFormatDesc &);

// What the memory types say of both sides of a copy.
cudaMemcpyKind kind_of(CUmemorytype to, CUmemorytype from);

}  // namespace warpsim::driver
