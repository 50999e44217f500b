// The undefined bits of a piece of memory, and where they came from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace warpsim {

class UndefinedBytes {
  public:
    // A new block begins: every byte is defined.
    void reset(size_t bytes) {
        if (any_) std::fill(bits_.begin(), bits_.end(), 0);
        any_ = false;
        size_ = bytes;
    }
    bool any() const { return any_; }  // since reset()
    // Bits of `count` bytes from `at` on, one byte for each.
    void get(size_t at, unsigned count, uint8_t *bits) const {
        if (any_)
            std::memcpy(bits, bits_.data() + at, count);
        else
            std::memset(bits, 0, count);
    }
    // Bytes that got a value of that origin (0: none is known).
    void set(size_t at, unsigned count, const uint8_t *bits, uint32_t origin) {
        if (!any_) begin();
        std::memcpy(bits_.data() + at, bits, count);
        for (size_t word = at / 4; word <= (at + count - 1) / 4; ++word) origin_[word] = origin;
    }
    void define(size_t at, size_t count) {
        if (any_) std::memset(bits_.data() + at, 0, count);
    }
    void undefine(size_t at, size_t count) {
        if (!count) return;
        if (!any_) begin();
        std::memset(bits_.data() + at, 0xff, count);
        std::fill(origin_.begin() + std::ptrdiff_t(at / 4), origin_.begin() + std::ptrdiff_t((at + count + 3) / 4), 0);
    }
    void copy(size_t to, size_t from, size_t count) {
        if (!any_) return;
        std::memmove(bits_.data() + to, bits_.data() + from, count);
        for (size_t i = 0; i < count; i += 4) origin_[(to + i) / 4] = origin_[(from + i) / 4];
    }
    uint32_t origin(size_t at) const { return any_ ? origin_[at / 4] : 0; }

  private:
    void begin() {
        any_ = true;
        if (bits_.size() >= size_) return;
        bits_.resize(size_);
        origin_.resize(size_ / 4 + 1);
    }
    std::vector<uint8_t> bits_;
    std::vector<uint32_t> origin_;  // by 4 bytes
    size_t size_ = 0;
    bool any_ = false;
};

}  // namespace warpsim
