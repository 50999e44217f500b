#include "memory/pages.h"

#ifdef __EMSCRIPTEN__

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "core/round_up.h"

namespace warpsim {
namespace {

constexpr uint64_t kRest = 64 << 20;  // beyond twice the limit, for gaps
// The host's memory ends below, and a pointer of 32 bits still holds all of them.
constexpr uint64_t kFirstAddress = 1ull << 31;
constexpr uint64_t kMost = (1ull << 32) - kFirstAddress - (1 << 16);
constexpr uint64_t kPage = 1 << 16;

}  // namespace

// Memory that nobody has written takes none: browsers give it page by page.
Reservation reserve(uint64_t limit_bytes) {
    const uint64_t bytes = 2 * limit_bytes + kRest;
    void *const data = bytes <= kMost ? std::aligned_alloc(kPage, round_up(bytes, kPage)) : nullptr;
    if (!data)
        throw std::runtime_error("no address space left for device memory: WARPSIM_MAX_MEMORY sets a lesser limit");
    return {kFirstAddress, static_cast<std::byte *>(data), bytes};
}

void release(const Reservation &reservation) {
    std::free(reservation.data);
}

std::byte *map_memory(uint64_t bytes) {
    if (bytes > kMost) return nullptr;
    void *const data = std::aligned_alloc(kPage, round_up(bytes, kPage));
    if (data) std::memset(data, 0, bytes);
    return static_cast<std::byte *>(data);
}

void unmap_memory(std::byte *host, uint64_t) {
    std::free(host);
}

void fill_with_ones(std::byte *host, uint64_t bytes) {
    std::memset(host, 0xff, bytes);
}

void fill_with_zeros(std::byte *host, uint64_t bytes) {
    std::memset(host, 0, bytes);
}

void discard(std::byte *, uint64_t) {}

bool is_mapped(uint64_t address) {
    return address < uint64_t{__builtin_wasm_memory_size(0)} * kPage;
}

}  // namespace warpsim

#endif
