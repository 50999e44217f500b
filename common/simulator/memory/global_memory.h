// Memory of one or more devices in one range of addresses: allocations of exact size, found by address. Also knows
// pinned and managed host memory, so that kernels can reach it. Thread-safe: lookups take no lock (allocations do not
// change while a kernel runs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/images.h"

namespace warpsim {

enum class MemoryKind : uint8_t { device, pinned, managed, module_global, module_const };

// A piece of memory as kernels and copies see it. Device memory's addresses are not the host's: a host program
// that dereferences a device pointer faults, as it would with a GPU. `host` is where the bytes really are.
struct AllocationView {
    uint64_t base = 0;          // device address
    uint64_t bytes = 0;         // exact
    std::byte *host = nullptr;  // host address of base
    MemoryKind kind = MemoryKind::device;
    bool adopted = false;     // the caller's own host memory
    bool rests = false;       // see GlobalMemory::rest
    uint8_t device = 0;       // that it is of
    bool pooled = false;      // of a pool, which says itself what devices reach it, whatever peers do
    uint32_t reached_by = 0;  // pools: a bit for each device besides its own
    uint64_t pool = 0;        // its number, for whoever made it
    bool committed = false;   // see GlobalMemory::commit
    bool contains(uint64_t address, uint64_t n) const {
        return address - base < bytes && n <= bytes - (address - base);
    }
    std::byte *at(uint64_t address) const { return host + (address - base); }
};

class GlobalMemory {
  public:
    // As the host sees it: all of it. Each device has so many bytes; what is allocated here is the first one's.
    explicit GlobalMemory(uint64_t limit_bytes, unsigned devices = 1);
    // The same memory as a device sees it: its own, the host's, and what peers let it reach. What is allocated here,
    // the figures of used() and limit() are its own.
    GlobalMemory(const GlobalMemory &all, unsigned device);
    ~GlobalMemory();

    // Of a device's view: whether it reaches what the peer allocates.
    void reach(unsigned peer, bool);
    bool reaches(unsigned peer) const { return peers_ >> peer & 1; }
    unsigned device() const { return device_; }
    // An allocation that a device's view does not give, because it is another's. Null: there is none.
    const AllocationView *find_foreign(uint64_t address) const;
    // The allocation at this base is of a pool that these devices reach, besides its own.
    void set_pool(uint64_t base, uint64_t pool, uint32_t reached_by);
    // All of the pool's are reached by these from now on.
    void change_pool(uint64_t pool, uint32_t reached_by);
    // The device's memory goes, and what it allocated of the host's.
    void release_all(unsigned device);

    // 512-byte aligned, filled with a poison pattern, or with zeros, which cost no memory until the program writes; 0
    // when the limit would be passed.
    enum class Fill { poison, zeros };
    uint64_t allocate(uint64_t bytes, MemoryKind, Fill = Fill::poison);
    // Registers host memory of the caller's (cudaHostRegister).
    uint64_t adopt(void *host, uint64_t bytes, MemoryKind);
    // False if `address` is not the base of a live allocation. Freed addresses are not reused soon.
    bool release(uint64_t address);

    // A graph's memory between a free and the next allocation: nobody finds it, and its address stays its own. False if
    // `address` is not the base of a live allocation that does not rest (`wake`: that rests). It wakes as new.
    bool rest(uint64_t address);
    bool wake(uint64_t address);

    // Addresses without memory, which no allocation takes (cuMemAddressReserve): a multiple of `alignment`, 0: no room.
    uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);
    // False if this is not all that one call reserved, or there is memory in it.
    bool free_addresses(uint64_t address, uint64_t bytes);
    // Memory of this device for reserved addresses that have none, filled as a new allocation, which those devices
    // reach besides; what follows other such memory of the same kind without a gap is one piece with it. False if the
    // addresses are not all reserved, or have memory. It does not count as used: count() does that, which is false
    // where it would pass the limit. release() leaves it alone.
    bool commit(uint64_t address, uint64_t bytes, uint32_t reached_by);
    void decommit(uint64_t address, uint64_t bytes);
    bool count(uint64_t bytes);
    void uncount(uint64_t bytes);

    // The allocation that holds address, or nullptr. Stable until it is released or rests.
    const AllocationView *find(uint64_t address) const;
    // The same of those that rest.
    const AllocationView *find_resting(uint64_t address) const;
    // Whether `address` lies in the range that device allocations come from, live or not.
    bool is_device_address(uint64_t address) const;
    // "12 bytes past the end of the 4096-byte allocation at 0x...", "freed", "never allocated", for messages.
    std::string explain(uint64_t address, uint64_t bytes) const;

    uint64_t used() const;
    uint64_t limit() const;

  private:
    struct Impl;
    bool sees(const AllocationView &) const;
    const AllocationView *find_in_all(uint64_t address) const;

    std::shared_ptr<Impl> impl_;
    bool all_ = true;  // the host's view
    unsigned device_ = 0;
    uint32_t peers_ = 0;

  public:
    ImageObjects &images;
};

}  // namespace warpsim
