// Memory that cuMemMap put at an address.
#pragma once

#include "driver/cuda_driver.h"

namespace warpsim::driver {

// Whether memory is mapped there, accessible or not. Under the runtime's lock.
bool is_mapped(CUdeviceptr address);

}  // namespace warpsim::driver
