// The devices of a process, all of one kind (WARPSIM_DEVICES), what they reach of each other's memory, and what
// cudaGetDeviceProperties and cudaDeviceGetAttribute say of a profile.
#pragma once

#include <memory>
#include <vector>

#include "memory/global_memory.h"
#include "runtime/cuda_api.h"
#include "runtime/profile.h"

namespace warpsim::rt {

class Devices {
  public:
    Devices(const GlobalMemory &all, unsigned count);

    unsigned count() const { return unsigned(memory_.size()); }
    bool has(int device) const { return device >= 0 && unsigned(device) < count(); }
    // Memory as the device sees it.
    GlobalMemory &memory(unsigned device) { return *memory_[device]; }
    const GlobalMemory &memory(unsigned device) const { return *memory_[device]; }
    // The device's peers have forgotten it, and it them.
    void forget(unsigned device);
    // cudaDeviceEnablePeerAccess, cudaDeviceDisablePeerAccess.
    cudaError_t reach(unsigned device, int peer, bool);

  private:
    std::vector<std::unique_ptr<GlobalMemory>> memory_;
};

// Of the calling host thread: what cudaSetDevice has chosen.
unsigned current_device();

void fill_properties(const Profile &, cudaDeviceProp &);
// False for an attribute that is unknown.
bool device_attribute(const Profile &, cudaDeviceAttr, int &value);

}  // namespace warpsim::rt
