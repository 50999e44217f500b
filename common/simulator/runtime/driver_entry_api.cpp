// Ways to functions of the driver. There is no driver here, and of its functions those alone that make tensor maps.
#include <string>

#include "runtime/runtime.h"
#include "runtime/tensor_map_api.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz);

namespace {

constexpr unsigned kThisVersion = CUDART_VERSION;

// A name that nobody has is no error: the status says so.
cudaError_t find_entry_point(const char *symbol, void **function, unsigned version,
                             cudaDriverEntryPointQueryResult *status) {
    if (!symbol || !function) return record(cudaErrorInvalidValue);
    unsigned since = 0;
    *function = driver_function(symbol, since);
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
    if (!*function) {
        say(std::string("the driver function ") + symbol + " does not exist on the simulator");
        result = cudaDriverEntryPointSymbolNotFound;
    } else if (version < since) {
        *function = nullptr;
        result = cudaDriverEntryPointVersionNotSufficent;
    }
    if (status) *status = result;
    return record(cudaSuccess);
}

}  // namespace

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
