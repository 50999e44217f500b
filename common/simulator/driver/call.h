// What every function of the driver API does first and last.
#pragma once

#include <new>
#include <string>

#include "driver/cuda_driver.h"
#include "runtime/runtime.h"

namespace warpsim::driver {

// Ends a call with this result. Whoever throws it has printed what a person needs to know.
struct Refusal {
    CUresult code;
};

CUresult result_of(cudaError_t);
inline CUresult result_of(CUresult result) {
    return result;
}

// Inside a catch block.
CUresult result_of_exception();

// For the runtime's functions that a driver's function calls: throws where one of them fails.
inline void check(cudaError_t code) {
    if (code != cudaSuccess) throw Refusal{result_of(code)};
}
inline void want(bool condition, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (!condition) throw Refusal{otherwise};
}

enum class Needs { nothing, driver, context };
// Throws Refusal where the thread lacks it.
void demand(Needs);

// While a driver's function runs: the runtime's functions that it calls go by its name in the report, make no primary
// context, and leave no error behind for cudaGetLastError.
class Scope {
  public:
    explicit Scope(const char *function);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const cudaError_t error_;
    const bool inside_;
    const char *const alias_;
};

// A function's body; it gives a CUresult or a cudaError_t, or throws.
template <class F>
CUresult call(F body, Needs needs = Needs::context, const char *function = __builtin_FUNCTION()) {
    const Scope scope(function);
    try {
        demand(needs);
        return result_of(body());
    } catch (...) {
        return result_of_exception();
    }
}

// A body that works on the runtime itself, under its lock. It may throw Refusal, too.
template <class F>
CUresult call_runtime(F body, const char *function = __builtin_FUNCTION()) {
    return call(
        [&] {
            CUresult refusal = CUDA_SUCCESS;
            const cudaError_t code = rt::api([&](rt::Runtime &runtime) {
                try {
                    return body(runtime);
                } catch (const Refusal &thrown) {
                    refusal = thrown.code;
                    return cudaSuccess;
                }
            });
            return refusal == CUDA_SUCCESS ? result_of(code) : refusal;
        },
        Needs::context, function);
}

// The name of the driver's function that runs now, as programs write it: without _v2. It stays.
const char *current_function();

}  // namespace warpsim::driver
