#include "driver/call.h"

#include <mutex>
#include <set>
#include <utility>

#include "driver/contexts.h"

namespace warpsim::driver {
namespace {

// One for each function that was called, for good: operations that run later mention them.
const char *plain_name(std::string name) {
    for (const char *suffix : {"_ptsz", "_ptds"}) {
        if (name.ends_with(suffix)) name.resize(name.size() - 5);
    }
    const size_t size = name.size();
    if (size > 3 && name[size - 3] == '_' && name[size - 2] == 'v') name.resize(size - 3);
    static std::mutex mutex;
    static auto *names = new std::set<std::string>;
    const std::lock_guard guard(mutex);
    return names->insert(std::move(name)).first->c_str();
}

}  // namespace

// The two APIs share their numbers, but for errors that the runtime alone tells apart.
CUresult result_of(cudaError_t code) {
    switch (code) {
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidPitchValue:
        case cudaErrorInvalidHostPointer:
        case cudaErrorInvalidDevicePointer:
        case cudaErrorInvalidTexture:
        case cudaErrorInvalidChannelDescriptor:
        case cudaErrorInvalidMemcpyDirection:
        case cudaErrorInvalidFilterSetting:
        case cudaErrorInvalidNormSetting:
            return CUDA_ERROR_INVALID_VALUE;
        case cudaErrorInvalidSymbol:
            return CUDA_ERROR_NOT_FOUND;
        case cudaErrorInvalidDeviceFunction:
            return CUDA_ERROR_INVALID_HANDLE;
        default: {
            const auto result = static_cast<CUresult>(code);
            const char *name = nullptr;
            return cuGetErrorName(result, &name) == CUDA_SUCCESS ? result : CUDA_ERROR_UNKNOWN;
        }
    }
}

CUresult result_of_exception() {
    try {
        throw;
    } catch (const Refusal &refusal) {
        return refusal.code;
    } catch (...) {
        return result_of(rt::code_of_exception());
    }
}

void demand(Needs needs) {
    if (needs == Needs::nothing) return;
    want(is_initialized(), CUDA_ERROR_NOT_INITIALIZED);
    if (needs == Needs::context) want(current_context(), CUDA_ERROR_INVALID_CONTEXT);
}

Scope::Scope(const char *function)
    : error_(rt::this_thread().last_error), inside_(rt::this_thread().in_driver_call), alias_(HostLog::alias) {
    rt::this_thread().in_driver_call = true;
    HostLog::alias = plain_name(function);
}

Scope::~Scope() {
    rt::this_thread().last_error = error_;
    rt::this_thread().in_driver_call = inside_;
    HostLog::alias = alias_;
}

const char *current_function() {
    return HostLog::alias ? HostLog::alias : "";
}

}  // namespace warpsim::driver
