#include "driver/jit_options.h"

#include <algorithm>
#include <cstring>

namespace warpsim::driver {

JitOptions::JitOptions(unsigned count, CUjit_option *options, void **values)
    : count_(count), options_(options), values_(values) {
    want(!count || (options && values));
    for (unsigned i = 0; i < count; ++i) want(options[i] >= 0 && options[i] < CU_JIT_NUM_OPTIONS);
}

void **JitOptions::value_of(CUjit_option option) const {
    for (unsigned i = 0; i < count_; ++i) {
        if (options_[i] == option) return &values_[i];
    }
    return nullptr;
}

// The buffer's size is the option's value, and becomes what was written, with the null character.
void JitOptions::give(CUjit_option buffer_option, CUjit_option size_option, const std::string &text) const {
    void **buffer = value_of(buffer_option), **size = value_of(size_option);
    if (!buffer || !size || !*buffer) return;
    const size_t room = reinterpret_cast<uintptr_t>(*size) & 0xffffffffu;
    if (!room) return;
    const size_t bytes = std::min(room - 1, text.size());
    std::memcpy(*buffer, text.data(), bytes);
    static_cast<char *>(*buffer)[bytes] = '\0';
    *size = reinterpret_cast<void *>(text.empty() ? 0 : bytes + 1);
}

void JitOptions::finish() const {
    give(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
    give(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, heard_);
    if (void **time = value_of(CU_JIT_WALL_TIME)) {
        const std::chrono::duration<float, std::milli> passed = std::chrono::steady_clock::now() - began_;
        const float milliseconds = passed.count();
        *time = nullptr;
        std::memcpy(time, &milliseconds, sizeof milliseconds);
    }
}

}  // namespace warpsim::driver
