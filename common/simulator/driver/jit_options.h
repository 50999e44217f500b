// The options of functions that compile PTX.
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

}  // namespace warpsim::driver
