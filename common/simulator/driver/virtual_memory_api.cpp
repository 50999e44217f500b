// Virtual memory management: addresses, memory, and which memory lies at which addresses (cuMemAddressReserve,
// cuMemCreate, cuMemMap). Memory lies at one place at a time; what is in it moves with it.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "driver/call.h"
#include "driver/virtual_memory.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

constexpr uint64_t kGranularity = 2 << 20;

// What cuMemCreate makes. The handle is its number.
struct Memory {
    CUmemAllocationProp properties{};
    uint64_t bytes = 0;
    unsigned references = 1;      // handles
    CUdeviceptr at = 0;           // where it is mapped; 0: nowhere
    uint32_t reached_by = 0;      // a bit for each device that may access it there
    std::vector<std::byte> held;  // what is in it while it is not; empty: nothing has been written yet
};

// All under the runtime's lock.
struct VirtualMemory {
    const GlobalMemory *of = nullptr;          // a reset of the device forgets it all
    std::map<CUdeviceptr, uint64_t> reserved;  // addresses and how many
    std::map<CUmemGenericAllocationHandle, std::unique_ptr<Memory>> memory;
    std::map<CUdeviceptr, Memory *> mapped;  // by address
    CUmemGenericAllocationHandle next = 1;
};

VirtualMemory &virtual_memory() {
    static VirtualMemory *made = new VirtualMemory;
    const GlobalMemory *memory = rt::Runtime::get()->memory.get();
    if (made->of != memory) {
        *made = {};
        made->of = memory;
    }
    return *made;
}

bool is_reserved(CUdeviceptr address, size_t bytes) {
    auto it = virtual_memory().reserved.upper_bound(address);
    if (it == virtual_memory().reserved.begin()) return false;
    --it;
    const uint64_t inside = address - it->first;
    return inside < it->second && bytes <= it->second - inside;
}

Memory &find(CUmemGenericAllocationHandle handle) {
    const auto found = virtual_memory().memory.find(handle);
    want(found != virtual_memory().memory.end() && found->second->references, CUDA_ERROR_INVALID_VALUE);
    return *found->second;
}

void check_properties(const rt::Runtime &runtime, const CUmemAllocationProp *p) {
    want(p && p->type == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (p->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        want(runtime.devices->has(p->location.id), CUDA_ERROR_INVALID_DEVICE);
    } else {
        rt::say(std::string(current_function()) + ": memory of the host is not supported");
        throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
    }
    if (p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE || p->allocFlags.compressionType) {
        rt::say(std::string(current_function()) + ": sharing with other processes and compression are not supported");
        throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
    }
}

GlobalMemory &device_of(rt::Runtime &runtime, const Memory &memory) {
    return runtime.devices->memory(static_cast<unsigned>(memory.properties.location.id));
}

// What is in the memory stays, wherever it lies and whoever may access it.
void set_access(rt::Runtime &runtime, Memory &memory, uint32_t reached_by) {
    if (memory.reached_by == reached_by) return;
    if (memory.reached_by) {
        if (memory.references || reached_by) {  // somebody may map it again
            const std::byte *from = runtime.memory->find(memory.at)->at(memory.at);
            memory.held.assign(from, from + memory.bytes);
        }
        runtime.memory->decommit(memory.at, memory.bytes);
    }
    memory.reached_by = reached_by;
    if (!reached_by) return;
    want(device_of(runtime, memory).commit(memory.at, memory.bytes, reached_by));
    if (!memory.held.empty()) {
        std::byte *to = runtime.memory->find(memory.at)->at(memory.at);
        std::copy(memory.held.begin(), memory.held.end(), to);
        memory.held = {};
    }
}

// Gone once no handle and no mapping is left.
void drop(rt::Runtime &runtime, Memory &memory) {
    if (memory.references || memory.at) return;
    device_of(runtime, memory).uncount(memory.bytes);
    std::erase_if(virtual_memory().memory, [&](const auto &entry) { return entry.second.get() == &memory; });
}

// The mappings that make up exactly these addresses.
std::vector<Memory *> mappings(CUdeviceptr address, size_t bytes) {
    std::vector<Memory *> found;
    CUdeviceptr at = address;
    for (auto it = virtual_memory().mapped.find(address); it != virtual_memory().mapped.end() && it->first == at;
         ++it) {
        if (at - address >= bytes) break;
        found.push_back(it->second);
        at += it->second->bytes;
    }
    want(bytes && at - address == bytes);
    return found;
}

Memory *mapping_at(CUdeviceptr address) {
    auto it = virtual_memory().mapped.upper_bound(address);
    if (it == virtual_memory().mapped.begin()) return nullptr;
    --it;
    return address - it->first < it->second->bytes ? it->second : nullptr;
}

}  // namespace

namespace warpsim::driver {

bool is_mapped(CUdeviceptr address) {
    return mapping_at(address) != nullptr;
}

}  // namespace warpsim::driver

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags) {
    return call_runtime([&](rt::Runtime &runtime) {
        want(bytes);
        check_properties(runtime, p);
        *bytes = kGranularity;
        return cudaSuccess;
    });
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
    return call_runtime([&](rt::Runtime &runtime) {
        want(address && bytes && bytes % kGranularity == 0 && !flags && !(alignment & (alignment - 1)));
        *address = runtime.memory->reserve_addresses(bytes, std::max<uint64_t>(alignment, kGranularity));
        if (!*address) {
            rt::say("cuMemAddressReserve: no room for " + std::to_string(bytes) +
                    " bytes of addresses: the simulator has about as many as the device has memory, twice "
                    "(WARPSIM_MAX_MEMORY)");
            return cudaErrorMemoryAllocation;
        }
        virtual_memory().reserved[*address] = bytes;
        return cudaSuccess;
    });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return call_runtime([&](rt::Runtime &runtime) {
        const auto first = virtual_memory().mapped.lower_bound(address);
        want(first == virtual_memory().mapped.end() || first->first - address >= bytes);
        want(runtime.memory->free_addresses(address, bytes));
        virtual_memory().reserved.erase(address);
        return cudaSuccess;
    });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *p,
                     unsigned long long flags) {
    return call_runtime([&](rt::Runtime &runtime) {
        want(handle && bytes && bytes % kGranularity == 0 && !flags);
        check_properties(runtime, p);
        if (!runtime.devices->memory(static_cast<unsigned>(p->location.id)).count(bytes)) {
            rt::say_out_of_memory(runtime, bytes);
            return cudaErrorMemoryAllocation;
        }
        auto memory = std::make_unique<Memory>();
        memory->properties = *p;
        memory->bytes = bytes;
        *handle = virtual_memory().next++;
        virtual_memory().memory[*handle] = std::move(memory);
        return cudaSuccess;
    });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return call_runtime([&](rt::Runtime &runtime) {
        Memory &memory = find(handle);
        --memory.references;
        drop(runtime, memory);
        return cudaSuccess;
    });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    return call_runtime([&](rt::Runtime &) {
        Memory *memory = mapping_at(reinterpret_cast<CUdeviceptr>(address));
        want(handle && memory);
        for (const auto &[number, one] : virtual_memory().memory) {
            if (one.get() == memory) *handle = number;
        }
        ++memory->references;
        return cudaSuccess;
    });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p, CUmemGenericAllocationHandle handle) {
    return call_runtime([&](rt::Runtime &) {
        want(p);
        *p = find(handle).properties;
        return cudaSuccess;
    });
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    return call_runtime([&](rt::Runtime &) {
        Memory &memory = find(handle);
        want(address % kGranularity == 0 && !flags && !offset && bytes == memory.bytes);
        want(is_reserved(address, bytes));
        const auto next = virtual_memory().mapped.lower_bound(address);
        want(!mapping_at(address) && (next == virtual_memory().mapped.end() || next->first - address >= bytes));
        if (memory.at) {
            rt::say("cuMemMap: this memory is mapped already, and the simulator has it at one place at a time");
            throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
        }
        memory.at = address;
        virtual_memory().mapped[address] = &memory;
        return cudaSuccess;
    });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    return call_runtime([&](rt::Runtime &runtime) {
        for (Memory *memory : mappings(address, bytes)) {
            set_access(runtime, *memory, 0);
            virtual_memory().mapped.erase(memory->at);
            memory->at = 0;
            drop(runtime, *memory);
        }
        return cudaSuccess;
    });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descriptions, size_t count) {
    return call_runtime([&](rt::Runtime &runtime) {
        want(descriptions && count);
        const std::vector<Memory *> all = mappings(address, bytes);
        for (size_t i = 0; i < count; ++i) {
            const CUmemAccessDesc &d = descriptions[i];
            if (d.location.type != CU_MEM_LOCATION_TYPE_DEVICE || d.flags == CU_MEM_ACCESS_FLAGS_PROT_READ) {
                rt::say("cuMemSetAccess: access by the host, and for reads alone, is not supported");
                throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
            }
            want(runtime.devices->has(d.location.id), CUDA_ERROR_INVALID_DEVICE);
            const bool wanted = d.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            want(wanted || d.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
            const uint32_t bit = 1u << d.location.id;
            for (Memory *memory : all)
                set_access(runtime, *memory, wanted ? memory->reached_by | bit : memory->reached_by & ~bit);
        }
        return cudaSuccess;
    });
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address) {
    return call_runtime([&](rt::Runtime &runtime) {
        const Memory *memory = mapping_at(address);
        want(flags && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && memory);
        want(runtime.devices->has(location->id), CUDA_ERROR_INVALID_DEVICE);
        *flags =
            memory->reached_by >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return cudaSuccess;
    });
}
