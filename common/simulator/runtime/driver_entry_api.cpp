// Ways to functions of the driver. There is no driver here, and of its functions those alone that make tensor maps, and
// cuGetProcAddress, by which programs look for them.
#include <cstring>
#include <string>

#include "runtime/runtime.h"
#include "runtime/tensor_map_api.h"

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz);

namespace {

constexpr unsigned kThisVersion = CUDART_VERSION;

static_assert(int(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == int(cudaDriverEntryPointSymbolNotFound));
static_assert(int(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == int(cudaDriverEntryPointVersionNotSufficent));

// A name that nobody has is no error: the status says so, and the pointer is null.
cudaDriverEntryPointQueryResult look_up(const char *symbol, unsigned version, void **function) {
    unsigned since = 12000;
    *function = std::strcmp(symbol, "cuGetProcAddress") ? driver_function(symbol, since)
                                                        : reinterpret_cast<void *>(&cuGetProcAddress_v2);
    if (!*function) {
        say(std::string("the driver function ") + symbol + " does not exist on the simulator");
        return cudaDriverEntryPointSymbolNotFound;
    }
    if (version >= since) return cudaDriverEntryPointSuccess;
    *function = nullptr;
    return cudaDriverEntryPointVersionNotSufficent;
}

cudaError_t find_entry_point(const char *symbol, void **function, unsigned version,
                             cudaDriverEntryPointQueryResult *status) {
    if (!symbol || !function) return record(cudaErrorInvalidValue);
    const cudaDriverEntryPointQueryResult result = look_up(symbol, version, function);
    if (status) *status = result;
    return record(cudaSuccess);
}

}  // namespace

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult *status) {
    if (!symbol || !function || version < 0 || unsigned(version) > kThisVersion) return CUDA_ERROR_INVALID_VALUE;
    const auto result = CUdriverProcAddressQueryResult(look_up(symbol, unsigned(version), function));
    if (status) *status = result;
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, version, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version,
                                                  unsigned long long, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, version, status);
}

// Programs built with toolkits before 13 know only these.
extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint(
    const char *symbol, void **function, unsigned long long, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, kThisVersion, status);
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint_ptsz(
    const char *symbol, void **function, unsigned long long, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, kThisVersion, status);
}
