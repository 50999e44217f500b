#include "runtime/devices.h"

#include "runtime/runtime.h"

namespace warpsim::rt {

Devices::Devices(const GlobalMemory &all, unsigned count) {
    for (unsigned device = 0; device < count; ++device) memory_.push_back(std::make_unique<GlobalMemory>(all, device));
}

void Devices::forget(unsigned device) {
    for (unsigned peer = 0; peer < count(); ++peer) {
        memory_[peer]->reach(device, false);
        memory_[device]->reach(peer, false);
    }
}

cudaError_t Devices::reach(unsigned device, int peer, bool reaches) {
    if (!has(peer) || unsigned(peer) == device) return cudaErrorInvalidDevice;
    if (memory_[device]->reaches(unsigned(peer)) == reaches)
        return reaches ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled;
    memory_[device]->reach(unsigned(peer), reaches);
    return cudaSuccess;
}

unsigned current_device() {
    return this_thread().device;
}

}  // namespace warpsim::rt
