// What the fuzzer's parts share: random numbers, targets and coverage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

using Bytes = std::string;

inline constexpr size_t kMostInput = 1 << 16;  // bytes; mutations make none longer

// splitmix64: the same numbers on every machine.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ull;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t n) { return next() % n; }  // n > 0
    bool one_in(uint64_t n) { return below(n) == 0; }
    template <class T>
    const T &of(const std::vector<T> &list) {
        return list[below(list.size())];
    }

  private:
    uint64_t state_;
};

// Numbers at which sizes, counts and shifts go wrong.
uint64_t edge_number(Random &);

// What is fuzzed. run() returns if the input did no harm, whatever it was; else the process dies with the reason on
// stderr.
struct Target {
    const char *name;
    const char *extension;
    void (*run)(const Bytes &input);
    // A damaged copy of `input`, with material from `other`. Null: inputs are made by `make` alone.
    Bytes (*mutate)(const Bytes &input, const Bytes &other, Random &);
    Bytes (*make)(Random &);
};

extern const Target kPtx, kFatbin, kKernels, kMaps;
extern const Target kPlanted;  // for the fuzzer's own tests

// PTX text -> PTX text, on words, numbers and lines; also what fat binaries carry.
Bytes mutate_ptx(const Bytes &input, const Bytes &other, Random &);

// The edges that the code took since clear_coverage(), as counts: zero throughout in a build without coverage.
inline constexpr size_t kCoverageBytes = 1 << 16;
const uint8_t *coverage();
void clear_coverage();

}  // namespace fuzz
