// What cudaGetDeviceProperties and cudaDeviceGetAttribute say of a profile.
#pragma once

#include "runtime/cuda_api.h"
#include "runtime/profile.h"

namespace warpsim::rt {

void fill_properties(const Profile &, cudaDeviceProp &);
// False for an attribute that is unknown.
bool device_attribute(const Profile &, cudaDeviceAttr, int &value);

}  // namespace warpsim::rt
