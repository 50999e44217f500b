#include "memory/pages.h"

#ifndef __EMSCRIPTEN__

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "core/round_up.h"

namespace warpsim {
namespace {

constexpr uint64_t kOnesBytes = 16 << 20;  // of the file full of ones; larger ranges map it instead of being written
constexpr uint64_t kSmallestReservation = 1ull << 30;
constexpr int kOnes = 0xff;

uint64_t page_bytes() {
    return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::byte *map(uint64_t bytes, int protection) {
    void *p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::byte *>(p);
}

// A file without a name, full of ones; -1 where there can be none.
int make_file_of_ones() {
    const int file = memfd_create("warpsim-poison", MFD_CLOEXEC);
    if (file < 0) return -1;
    const std::vector<unsigned char> pattern(1 << 20, kOnes);
    for (uint64_t written = 0; written < kOnesBytes;) {
        const ssize_t n = write(file, pattern.data(), pattern.size());
        if (n <= 0) {
            close(file);
            return -1;
        }
        written += static_cast<uint64_t>(n);
    }
    return file;
}

}  // namespace

// Two mappings of one size: the addresses are never accessible, the data holds the bytes.
Reservation reserve(uint64_t limit_bytes) {
    for (uint64_t size = round_up(2 * limit_bytes + kSmallestReservation, 1 << 21);; size /= 2) {
        if (size < kSmallestReservation) throw std::runtime_error("no address space left for device memory");
        std::byte *const addresses = map(size, PROT_NONE);
        std::byte *const data = addresses ? map(size, PROT_READ | PROT_WRITE) : nullptr;
        if (data) {
            madvise(data, size, MADV_DONTDUMP);
            return {reinterpret_cast<uint64_t>(addresses), data, size};
        }
        if (addresses) munmap(addresses, size);
    }
}

void release(const Reservation &reservation) {
    munmap(reinterpret_cast<void *>(reservation.addresses), reservation.bytes);
    munmap(reservation.data, reservation.bytes);
}

std::byte *map_memory(uint64_t bytes) {
    return map(bytes, PROT_READ | PROT_WRITE);
}

void unmap_memory(std::byte *host, uint64_t bytes) {
    munmap(host, round_up(bytes, page_bytes()));
}

void fill_with_ones(std::byte *host, uint64_t bytes) {
    const uint64_t at = reinterpret_cast<uint64_t>(host);
    const uint64_t begin = round_up(at, page_bytes()), end = (at + bytes) / page_bytes() * page_bytes();
    static int file = -1;  // one for the process, made for the first range that is large enough
    if (end >= begin + kOnesBytes && file < 0) file = make_file_of_ones();
    if (end < begin + kOnesBytes || file < 0) {
        std::memset(host, kOnes, bytes);
        return;
    }
    // Copy-on-write pages of one file: memory is used only where the program writes.
    std::memset(host, kOnes, begin - at);
    for (uint64_t from = begin; from < end; from += kOnesBytes) {
        const uint64_t n = std::min(kOnesBytes, end - from);
        void *p = mmap(reinterpret_cast<void *>(from), n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0);
        if (p == MAP_FAILED) std::memset(reinterpret_cast<void *>(from), kOnes, n);
    }
    std::memset(reinterpret_cast<void *>(end), kOnes, at + bytes - end);
}

void fill_with_zeros(std::byte *host, uint64_t bytes) {
    const uint64_t at = reinterpret_cast<uint64_t>(host);
    const uint64_t begin = std::min(round_up(at, page_bytes()) - at, bytes),
                   end = std::max(begin, bytes - (at + bytes) % page_bytes());
    discard(host, bytes);
    std::memset(host, 0, begin);
    std::memset(host + end, 0, bytes - end);
}

void discard(std::byte *host, uint64_t bytes) {
    const uint64_t begin = round_up(reinterpret_cast<uint64_t>(host), page_bytes());
    const uint64_t end = (reinterpret_cast<uint64_t>(host) + bytes) / page_bytes() * page_bytes();
    if (begin >= end) return;
    mmap(reinterpret_cast<void *>(begin), end - begin, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

bool is_mapped(uint64_t address) {
    unsigned char resident;
    return address < 1ull << 47 &&
           mincore(reinterpret_cast<void *>(address / page_bytes() * page_bytes()), 1, &resident) == 0;
}

}  // namespace warpsim

#endif
