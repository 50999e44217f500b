// The heap behind malloc and free in kernels, as large as CUDA's default. A block uses it in its turn only
// (exec/turns.h).
#pragma once

#include <cstdint>
#include <map>

namespace warpsim {

class DeviceHeap {
  public:
    static constexpr uint64_t kBytes = 8 << 20;  // cudaLimitMallocHeapSize
    explicit DeviceHeap(uint64_t base) : base_(base) { free_[base] = kBytes; }
    uint64_t base() const { return base_; }

    // 16-byte aligned; 0 when nothing large enough is free. First fit.
    uint64_t allocate(uint64_t bytes) {
        if (bytes == 0 || bytes > kBytes) return 0;
        bytes = (bytes + 15) / 16 * 16;
        for (auto it = free_.begin(); it != free_.end(); ++it) {
            if (it->second < bytes) continue;
            const auto [address, available] = *it;
            free_.erase(it);
            if (available > bytes) free_[address + bytes] = available - bytes;
            used_[address] = bytes;
            return address;
        }
        return 0;
    }

    // False: not the address of a live piece.
    bool release(uint64_t address) {
        const auto found = used_.find(address);
        if (found == used_.end()) return false;
        uint64_t bytes = found->second;
        used_.erase(found);
        auto next = free_.lower_bound(address);
        if (next != free_.end() && next->first == address + bytes) {
            bytes += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            const auto previous = std::prev(next);
            if (previous->first + previous->second == address) {
                previous->second += bytes;
                return true;
            }
        }
        free_[address] = bytes;
        return true;
    }

  private:
    uint64_t base_;
    std::map<uint64_t, uint64_t> free_, used_;  // address -> bytes
};

}  // namespace warpsim
