#include "driver/libraries.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "driver/contexts.h"

namespace warpsim::driver {
namespace {

// What was read from files must live as long as the library. Under the runtime's lock.
std::map<const rt::Library *, std::unique_ptr<const std::string>> &contents() {
    static auto *made = new std::map<const rt::Library *, std::unique_ptr<const std::string>>;
    return *made;
}

// Parses the code at once, so that errors in it come from the call that loads it.
rt::Library *finish(rt::Runtime &runtime, rt::Library *library) {
    try {
        runtime.modules.loaded(*library);
        return library;
    } catch (...) {
        runtime.modules.remove(library);
        throw;
    }
}

template <class F>
rt::Library *load(bool owned, F add) {
    rt::Library *library = nullptr;
    check(rt::api([&](rt::Runtime &runtime) {
        library = finish(runtime, add(runtime));
        return cudaSuccess;
    }));
    if (owned) own(Resource::module, library);
    return library;
}

}  // namespace

rt::Library *load_code(const void *code, bool owned) {
    return load(owned, [&](rt::Runtime &runtime) { return runtime.modules.add_data(code, current_function()); });
}

std::string read_file(const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        rt::say(std::string(current_function()) + ": there is no file " + path);
        throw Refusal{CUDA_ERROR_FILE_NOT_FOUND};
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

rt::Library *load_file(const char *path, bool owned) {
    auto text = std::make_unique<const std::string>(read_file(path));
    const char *code = text->c_str();  // a null character follows it
    rt::Library *library = load(owned, [&](rt::Runtime &runtime) {
        rt::Library *added = runtime.modules.add_data(code, current_function());
        added->origin = path;
        return added;
    });
    const std::lock_guard guard(rt::Runtime::get()->mutex);
    contents()[library] = std::move(text);
    return library;
}

void unload(rt::Library *library) {
    check(cudaLibraryUnload(reinterpret_cast<cudaLibrary_t>(library)));
    disown(library);
    const std::lock_guard guard(rt::Runtime::get()->mutex);
    contents().erase(library);
}

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
