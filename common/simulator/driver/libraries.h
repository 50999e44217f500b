// Code that is loaded by modules and libraries, which are the same thing here, and the options of what compiles PTX.
#pragma once

#include <chrono>
#include <string>

#include "driver/call.h"

namespace warpsim::driver {

class JitOptions {
  public:
    // Throws Refusal for options that do not exist.
    JitOptions(unsigned count, CUjit_option *options, void **values);

    // Runs what compiles code. What the simulator says meanwhile also goes to the program's own log.
    template <class F>
    void run(F compile) {
        std::string *&heard = rt::this_thread().heard;
        std::string *const before = heard;
        heard = &heard_;
        const auto end = [&] {
            heard = before;
            finish();
        };
        try {
            compile();
        } catch (...) {
            end();
            throw;
        }
        end();
    }

  private:
    void finish() const;
    void **value_of(CUjit_option) const;
    void give(CUjit_option buffer, CUjit_option size, const std::string &text) const;

    const unsigned count_;
    CUjit_option *const options_;
    void **const values_;
    std::string heard_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

inline rt::Library *library_of(CUmodule module) {
    return reinterpret_cast<rt::Library *>(module);
}
inline CUmodule module_of(rt::Library *library) {
    return reinterpret_cast<CUmodule>(library);
}

// PTX or a fat binary in memory; or the content of a file of PTX or of a bare fat binary. They belong to the current
// context if `owned`. Throw Refusal.
rt::Library *load_code(const void *code, bool owned);
rt::Library *load_file(const char *path, bool owned);
void unload(rt::Library *);

// The whole file. Throws Refusal{CUDA_ERROR_FILE_NOT_FOUND}.
std::string read_file(const char *path);

}  // namespace warpsim::driver
