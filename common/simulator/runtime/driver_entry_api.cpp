// Ways to functions of the driver. There is no driver here; a table leaves room for what the simulator provides itself.
#include <cstring>
#include <map>
#include <string>

#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz);

namespace {

// Driver functions by name, without version suffixes.
const std::map<std::string, void *> &entry_points() {
    static const std::map<std::string, void *> table;
    return table;
}

cudaError_t find_entry_point(const char *symbol, void **function, cudaDriverEntryPointQueryResult *status) {
    if (!symbol || !function) return record(cudaErrorInvalidValue);
    const auto found = entry_points().find(symbol);
    const bool known = found != entry_points().end();
    *function = known ? found->second : nullptr;
    if (status) *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!known) say(std::string("the driver function ") + symbol + " does not exist on the simulator");
    return known ? cudaSuccess : record(cudaErrorSymbolNotFound);
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned, unsigned long long,
                                                  cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, status);
}

// Programs built with toolkits before 13 know only these.
extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint(
    const char *symbol, void **function, unsigned long long, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, status);
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint_ptsz(
    const char *symbol, void **function, unsigned long long, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, status);
}
