#include "fatbin/fatbin.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace warpsim {

ReadableMemory::ReadableMemory() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin = 0, end = 0;
        char readable = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &readable) != 3 || readable != 'r') continue;
        if (!ranges_.empty() && ranges_.back().second == begin) {
            ranges_.back().second = end;
        } else {
            ranges_.emplace_back(begin, end);
        }
    }
    if (ranges_.empty()) ranges_.emplace_back(1, UINT64_MAX);
}

uint64_t ReadableMemory::from(const void *at) const {
    const uint64_t address = reinterpret_cast<uint64_t>(at);
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(address, UINT64_MAX));
    if (next == ranges_.begin()) return 0;
    const auto &[begin, end] = *std::prev(next);
    return address < end ? end - address : 0;
}

}  // namespace warpsim

namespace warpsim::fatbin {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1, kMagic = 0xba55ed50;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000, kFlagArchSpecific = 0x100000, kFlagFamilySpecific = 0x200000;
constexpr uint64_t kWrapperBytes = 24, kHeaderBytes = 16, kEntryBytes = 64;
constexpr uint64_t kMaxTextBytes = 1ull << 30;

template <class T>
T read(const uint8_t *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// A function of a shared library that this one does not link: the machine may lack it, and most programs do not need
// it.
template <class Function>
Function *library_function(const char *library, const char *package, const char *compression, const char *name) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);  // stays open
    void *symbol = handle ? dlsym(handle, name) : nullptr;
    if (!symbol)
        throw Error(std::string("the program's PTX is compressed with ") + compression + ", and " + library +
                    " cannot be used (" + (handle ? name : "not found") +
                    "): install it (Debian, Ubuntu: apt install " + package +
                    ") or compile the program with `nvcc -no-compress`");
    return reinterpret_cast<Function *>(symbol);
}

void decompress_zstd(const Entry &entry, std::string &text) {
    using Decompress = size_t(void *, size_t, const void *, size_t);
    using IsError = unsigned(size_t);
    using ContentSize = unsigned long long(const void *, size_t);
    constexpr unsigned long long kUnknown = -1;
    static auto *decompress = library_function<Decompress>("libzstd.so.1", "libzstd1", "zstd", "ZSTD_decompress");
    static auto *is_error = library_function<IsError>("libzstd.so.1", "libzstd1", "zstd", "ZSTD_isError");
    static auto *content_size =
        library_function<ContentSize>("libzstd.so.1", "libzstd1", "zstd", "ZSTD_getFrameContentSize");
    const unsigned long long stated = content_size(entry.payload, entry.payload_bytes);
    if (stated != kUnknown && stated != entry.raw_bytes)
        throw Error("the fat binary's PTX is damaged: its sizes before compression disagree");
    text.resize(entry.raw_bytes);
    const size_t bytes = decompress(text.data(), text.size(), entry.payload, entry.payload_bytes);
    if (is_error(bytes) || bytes != text.size())
        throw Error("the fat binary's PTX is damaged: zstd cannot decompress it");
}

void decompress_lz4(const Entry &entry, std::string &text) {
    using Decompress = int(const char *, char *, int, int);
    static auto *decompress = library_function<Decompress>("liblz4.so.1", "liblz4-1", "LZ4", "LZ4_decompress_safe");
    // A byte of LZ4 becomes 255 at most.
    if (entry.raw_bytes > 255 * entry.payload_bytes)
        throw Error("the fat binary's PTX is damaged: LZ4 cannot have packed so much into so little");
    text.resize(entry.raw_bytes);
    const int bytes = decompress(reinterpret_cast<const char *>(entry.payload), text.data(),
                                 static_cast<int>(entry.payload_bytes), static_cast<int>(text.size()));
    if (bytes < 0 || static_cast<size_t>(bytes) != text.size())
        throw Error("the fat binary's PTX is damaged: LZ4 cannot decompress it");
}

bool runs_on(const Entry &entry, unsigned compute, bool arch_specific) {
    if (entry.suffix == 'a') return arch_specific && entry.compute == compute;
    if (entry.suffix == 'f') return entry.compute <= compute && entry.compute / 10 == compute / 10;
    return entry.compute <= compute;
}

}  // namespace

bool is_fat_binary(const void *at) {
    const uint32_t magic = read<uint32_t>(static_cast<const uint8_t *>(at));
    return magic == kWrapperMagic || magic == kMagic;
}

std::vector<const void *> images(const void *wrapper_or_fatbin) {
    const ReadableMemory memory;
    const auto *at = static_cast<const uint8_t *>(wrapper_or_fatbin);
    if (memory.from(at) < sizeof(uint32_t)) throw Error("no fat binary: there is no memory where it should be");
    if (read<uint32_t>(at) != kWrapperMagic) return {at};
    if (memory.from(at) < kWrapperBytes) throw Error("the fat binary's wrapper is damaged: it runs out of memory");
    std::vector<const void *> result{read<const void *>(at + 8)};
    const auto *linked = read<const uint8_t *>(at + 16);
    if (read<uint32_t>(at + 4) < 2 || !linked) return result;
    for (;; linked += sizeof(void *)) {
        if (memory.from(linked) < sizeof(void *))
            throw Error("the fat binary's wrapper is damaged: its list of linked objects has no end");
        const auto *image = read<const void *>(linked);
        if (!image) return result;
        result.push_back(image);
    }
}

std::vector<Entry> list(const void *fatbin) {
    const auto *at = static_cast<const uint8_t *>(fatbin);
    const uint64_t readable = ReadableMemory().from(at);
    if (readable < kHeaderBytes) throw Error("the fat binary is damaged: it lies where there is no memory");
    if (read<uint32_t>(at) != kMagic) throw Error("not a fat binary: its magic number is wrong");
    const uint64_t header = read<uint16_t>(at + 6), total = read<uint64_t>(at + 8);
    if (header < kHeaderBytes || header > readable || total > readable - header)
        throw Error("the fat binary's header is damaged: " + std::to_string(total) + " bytes are not there");
    const uint8_t *cursor = at + header;
    std::vector<Entry> entries;
    for (uint64_t left = total; left > 0;) {
        if (left < kEntryBytes) throw Error("the fat binary is damaged: an entry runs past its end");
        const uint64_t entry_header = read<uint32_t>(cursor + 4), padded = read<uint64_t>(cursor + 8);
        if (entry_header < kEntryBytes || entry_header > left || padded > left - entry_header)
            throw Error("the fat binary is damaged: an entry runs past its end");
        Entry entry;
        entry.is_ptx = read<uint16_t>(cursor) == 1;
        entry.compute = read<uint32_t>(cursor + 28);
        entry.flags = read<uint64_t>(cursor + 40);
        entry.suffix = entry.flags & kFlagArchSpecific ? 'a' : entry.flags & kFlagFamilySpecific ? 'f' : 0;
        entry.payload = cursor + entry_header;
        entry.payload_bytes = padded;
        if (entry.flags & (kFlagLz4 | kFlagZstd)) {
            entry.payload_bytes = read<uint32_t>(cursor + 16);
            entry.raw_bytes = read<uint64_t>(cursor + 56);
            if (entry.payload_bytes > padded) throw Error("the fat binary is damaged: an entry runs past its end");
        }
        entries.push_back(entry);
        cursor += entry_header + padded;
        left -= entry_header + padded;
    }
    return entries;
}

std::string ptx_text(const Entry &entry) {
    if (!entry.is_ptx) throw Error("this entry of the fat binary is machine code, not PTX");
    if (entry.raw_bytes > kMaxTextBytes || entry.payload_bytes > kMaxTextBytes)
        throw Error("the fat binary's PTX is damaged: it claims to be larger than 1 GiB");
    std::string text;
    if (entry.flags & (kFlagLz4 | kFlagZstd)) {
        (entry.flags & kFlagZstd ? decompress_zstd : decompress_lz4)(entry, text);
    } else {
        text.assign(reinterpret_cast<const char *>(entry.payload), entry.payload_bytes);
    }
    text.resize(std::strlen(text.c_str()));  // stored as a C string, padded
    return text;
}

const Entry *choose(const std::vector<Entry> &entries, unsigned compute, bool arch_specific) {
    const Entry *best = nullptr;
    for (const Entry &entry : entries) {
        if (!entry.is_ptx || !runs_on(entry, compute, arch_specific)) continue;
        // Of the same capability, the one made for fewer devices: a, f, plain.
        const auto rank = [](const Entry &e) {
            return e.compute * 4 + (e.suffix == 'a' ? 2 : e.suffix == 'f' ? 1 : 0);
        };
        if (!best || rank(entry) > rank(*best)) best = &entry;
    }
    return best;
}

}  // namespace warpsim::fatbin
