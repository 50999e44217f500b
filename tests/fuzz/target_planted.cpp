// Inputs whose harm is known, for the tests of the fuzzer: a line "crash", "hang" or "hoard"; all others do none.
#include <cstdlib>
#include <memory>
#include <vector>

#include "fuzz.h"

namespace fuzz {
namespace {

constexpr size_t kPiece = 16 << 20;  // bytes

void run(const Bytes &input) {
    if (input == "crash\n") std::abort();
    std::vector<Bytes> pieces;
    for (volatile bool goes_on = input == "hang\n" || input == "hoard\n"; goes_on;)
        if (input == "hoard\n") pieces.emplace_back(kPiece, 'x');
}

Bytes mutate(const Bytes &, const Bytes &, Random &random) {
    return std::to_string(random.below(1000)) + '\n';
}

}  // namespace

const Target kPlanted = {"planted", "txt", run, mutate, nullptr};

}  // namespace fuzz
