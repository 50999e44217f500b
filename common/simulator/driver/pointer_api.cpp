// What an address points to: cuPointer*.
#include <cstdint>
#include <cstring>

#include "driver/call.h"
#include "driver/contexts.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

template <class T>
void give(void *to, T value) {
    std::memcpy(to, &value, sizeof value);
}

bool on_host(const AllocationView &view) {
    return view.kind == MemoryKind::pinned || view.kind == MemoryKind::managed;
}

// Throws Refusal for an attribute that this memory does not have. Without memory `view` is null.
void attribute(void *to, CUpointer_attribute which, CUdeviceptr address, const AllocationView *view, int device) {
    const auto memory = [&]() -> const AllocationView & {
        want(view);
        return *view;
    };
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(to, handle_of(owner_of(reinterpret_cast<const void *>(memory().base))));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(to, unsigned(memory().kind == MemoryKind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            memory();
            return give(to, address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            want(on_host(memory()));
            return give(to, address);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give(to, memory().base);  // nothing else lies there
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give(to, unsigned(memory().kind == MemoryKind::managed));
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            memory();
            return give(to, device);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return give(to, memory().base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return give(to, static_cast<size_t>(memory().bytes));
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return give(to, unsigned(view != nullptr));
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            memory();
            return give(to, 0u);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            memory();
            return give(to, uint64_t{CU_MEM_HANDLE_TYPE_NONE});
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            memory();
            return give(to, unsigned(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
        default:
            throw Refusal{CUDA_ERROR_INVALID_VALUE};
    }
}

// For a batch, what memory lacks is 0.
void attribute_or_zero(void *to, CUpointer_attribute which, CUdeviceptr address, const AllocationView *view,
                       int device) {
    try {
        attribute(to, which, address, view, device);
    } catch (const Refusal &) {
        switch (which) {
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                return give(to, -2);  // no device
            case CU_POINTER_ATTRIBUTE_CONTEXT:
            case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                return give(to, uint64_t{0});
            default:
                return give(to, 0u);
        }
    }
}

// A copy, since it is looked at without the lock.
bool find(CUdeviceptr address, AllocationView &found, int &device) {
    bool there = false;
    check(rt::api([&](rt::Runtime &runtime) {
        const AllocationView *view = runtime.memory->find(address);
        if (view) found = *view;
        there = view;
        return cudaSuccess;
    }));
    cudaPointerAttributes known{};
    if (there) check(cudaPointerGetAttributes(&known, reinterpret_cast<const void *>(address)));
    device = known.device;
    return there;
}

}  // namespace

CUresult cuPointerGetAttribute(void *to, CUpointer_attribute which, CUdeviceptr address) {
    return call([&] {
        want(to);
        AllocationView view;
        int device = 0;
        const bool there = find(address, view, device);
        attribute(to, which, address, there ? &view : nullptr, device);
        return CUDA_SUCCESS;
    });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **to, CUdeviceptr address) {
    return call([&] {
        want(count && which && to);
        AllocationView view;
        int device = 0;
        const bool there = find(address, view, device);
        for (unsigned i = 0; i < count; ++i)
            attribute_or_zero(to[i], which[i], address, there ? &view : nullptr, device);
        return CUDA_SUCCESS;
    });
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr address) {
    return call([&] {
        AllocationView view;
        int device = 0;
        // Blocking copies wait in any case.
        want(value && which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && find(address, view, device));
        return CUDA_SUCCESS;
    });
}
