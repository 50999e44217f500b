// What device memory asks of the system: a range of addresses, the bytes behind them, and pages that read as one byte
// without taking memory. memory/pages.cpp has it for systems with pages, memory/pages_wasm.cpp for WebAssembly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpsim {

struct Reservation {
    uint64_t addresses = 0;     // the first of `bytes` device addresses; nothing of the host's lies at any of them
    std::byte *data = nullptr;  // as many bytes, which take memory where they are written
    uint64_t bytes = 0;
};
// Twice the limit and more, for gaps and rest; less where the process may not have that much address space. Throws
// std::runtime_error where there is too little.
Reservation reserve(uint64_t limit_bytes);
void release(const Reservation &);

// Zeros, from the beginning of a page; nullptr where there is no memory.
std::byte *map_memory(uint64_t bytes);
void unmap_memory(std::byte *, uint64_t bytes);

// What lies in [host, host + bytes) of mapped or reserved memory becomes 0xff or 0. Whole pages take no memory until
// they are written, where there are many of them (0xff), or any (0).
void fill_with_ones(std::byte *host, uint64_t bytes);
void fill_with_zeros(std::byte *host, uint64_t bytes);
// Nobody reads these bytes any more: whole pages of them go back to the system.
void discard(std::byte *host, uint64_t bytes);

// Whether the process has any memory of its own at `address`.
bool is_mapped(uint64_t address);

}  // namespace warpsim
