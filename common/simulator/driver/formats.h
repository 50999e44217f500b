// Formats of arrays and textures, which the runtime describes by bits per channel.
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

}  // namespace warpsim::driver
