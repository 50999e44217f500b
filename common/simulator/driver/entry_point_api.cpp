// Ways to the functions of the driver by name: cuGetProcAddress, and the runtime's cudaGetDriverEntryPoint.
#include <string>

#include "driver/cuda_driver.h"
#include "driver/entry_table.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz);

namespace {

constexpr unsigned kThisVersion = CUDART_VERSION;

static_assert(int(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == int(cudaDriverEntryPointSymbolNotFound));
static_assert(int(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == int(cudaDriverEntryPointVersionNotSufficent));
static_assert(int(CU_GET_PROC_ADDRESS_LEGACY_STREAM) == int(cudaEnableLegacyStream));
static_assert(int(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == int(cudaEnablePerThreadDefaultStream));

// A name that nobody has is no error: the status says so, and the pointer is null.
cudaDriverEntryPointQueryResult look_up(const char *symbol, unsigned version, bool per_thread, void **function) {
    const driver::Entry entry = driver::find_entry(symbol, version, per_thread);
    *function = entry.function;
    if (entry.function) return cudaDriverEntryPointSuccess;
    if (entry.known) return cudaDriverEntryPointVersionNotSufficent;
    say(std::string("the driver function ") + symbol + " does not exist on the simulator");
    return cudaDriverEntryPointSymbolNotFound;
}

cudaError_t find_entry_point(const char *symbol, void **function, unsigned version, unsigned long long flags,
                             cudaDriverEntryPointQueryResult *status) {
    constexpr unsigned long long kKnown = cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream;
    if (!symbol || !function || flags & ~kKnown) return record(cudaErrorInvalidValue);
    const auto result = look_up(symbol, version, flags & cudaEnablePerThreadDefaultStream, function);
    if (status) *status = result;
    return record(cudaSuccess);
}

// Programs built with --default-stream per-thread mean those functions unless they say otherwise.
unsigned long long per_thread(unsigned long long flags) {
    return flags == cudaEnableDefault ? static_cast<unsigned long long>(cudaEnablePerThreadDefaultStream) : flags;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    constexpr cuuint64_t kKnown = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !function || version < 0 || unsigned(version) > kThisVersion || flags & ~kKnown)
        return CUDA_ERROR_INVALID_VALUE;
    const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const auto result = CUdriverProcAddressQueryResult(look_up(symbol, unsigned(version), per_thread, function));
    if (status) *status = result;
    return CUDA_SUCCESS;
}

// As it was before CUDA 12: an error says that there is none.
#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char *symbol, void **function,
                                                                            int version, cuuint64_t flags) {
    const CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
    return result == CUDA_SUCCESS && !*function ? CUDA_ERROR_NOT_FOUND : result;
}

// Tables of functions that only NVIDIA's own libraries know. NVRTC asks for one and does without.
CUresult cuGetExportTable(const void **table, const CUuuid *) {
    if (table) *table = nullptr;
    return table ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version,
                                                  unsigned long long flags, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, version, per_thread(flags), status);
}

// Programs built with toolkits before 13 know only these.
extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint(
    const char *symbol, void **function, unsigned long long flags, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, kThisVersion, flags, status);
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaGetDriverEntryPoint_ptsz(
    const char *symbol, void **function, unsigned long long flags, cudaDriverEntryPointQueryResult *status) {
    return find_entry_point(symbol, function, kThisVersion, per_thread(flags), status);
}
