// Gives bytes to the runtime as a fat binary; no byte behind them may be read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "runtime/cuda_api.h"

namespace fuzz {
namespace {

constexpr size_t kHeaderBytes = 16, kEntryBytes = 64;

// A copy of the input that ends where a mapping ends.
class AtTheEdge {
  public:
    explicit AtTheEdge(const Bytes &input) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = (input.size() + page - 1) / page * page + page;
        base_ = static_cast<char *>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_ + bytes_ - page, page, PROT_NONE);  // still taken, so that nothing else comes to lie there
        at_ = base_ + bytes_ - page - input.size();
        std::memcpy(at_, input.data(), input.size());
    }
    ~AtTheEdge() { munmap(base_, bytes_); }
    const void *data() const { return at_; }

  private:
    char *base_, *at_;
    size_t bytes_;
};

void run(const Bytes &input) {
    if (input.empty()) return;
    const AtTheEdge memory(input);
    cudaLibrary_t library = nullptr;
    if (cudaLibraryLoadData(&library, memory.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaSuccess) {
        unsigned count = 0;
        cudaLibraryGetKernelCount(&count, library);
        cudaLibraryUnload(library);
    }
    cudaGetLastError();
}

template <class T>
T get(const Bytes &bytes, size_t at) {
    T value{};
    if (at <= bytes.size() && sizeof value <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

void put(Bytes &bytes, size_t at, uint64_t value, size_t width) {
    if (at <= bytes.size() && width <= bytes.size() - at) std::memcpy(bytes.data() + at, &value, width);
}

// Where the entries begin, as far as their lengths are sound.
std::vector<size_t> entries_of(const Bytes &bytes) {
    std::vector<size_t> entries;
    for (size_t at = get<uint16_t>(bytes, 6); at < bytes.size() && bytes.size() - at >= kEntryBytes;) {
        entries.push_back(at);
        const uint64_t step = get<uint32_t>(bytes, at + 4) + get<uint64_t>(bytes, at + 8);
        if (step < kEntryBytes || step > bytes.size() - at) break;
        at += step;
    }
    return entries;
}

// The header's length told right again, so that damage behind it is met.
void mend_total(Bytes &bytes) {
    const size_t header = get<uint16_t>(bytes, 6);
    if (header <= bytes.size()) put(bytes, 8, bytes.size() - header, 8);
}

struct Field {
    size_t at, width;
};

void mutate_once(Bytes &bytes, const Bytes &other, Random &random) {
    static const std::vector<Field> kHeader = {{0, 4}, {4, 2}, {6, 2}, {8, 8}};
    static const std::vector<Field> kEntry = {{0, 2}, {4, 4}, {8, 8}, {16, 4}, {28, 4}, {40, 8}, {56, 8}};
    static const std::vector<uint64_t> kFlags = {0x2000, 0x8000, 0x100000, 0x200000};
    const std::vector<size_t> entries = entries_of(bytes);
    const size_t entry = entries.empty() ? 0 : random.of(entries);
    const size_t at = bytes.empty() ? 0 : random.below(bytes.size());
    switch (random.below(9)) {
        case 0: {
            const Field &field = random.of(kHeader);
            put(bytes, field.at, edge_number(random), field.width);
            break;
        }
        case 1: {
            const Field &field = random.of(kEntry);
            put(bytes, entry + field.at, edge_number(random), field.width);
            break;
        }
        case 2: {  // near what it was
            const Field &field = random.of(kEntry);
            put(bytes, entry + field.at, get<uint64_t>(bytes, entry + field.at) + random.below(17) - 8, field.width);
            break;
        }
        case 3:
            put(bytes, entry + 40, get<uint64_t>(bytes, entry + 40) ^ random.of(kFlags), 8);
            break;
        case 4:
            bytes.resize(at);
            if (random.one_in(2)) mend_total(bytes);
            break;
        case 5:
            bytes.append(other, 0, kMostInput);
            mend_total(bytes);
            break;
        case 6: {  // another text in a plain entry
            if (entries.empty()) break;
            const size_t text = entry + std::max<size_t>(kEntryBytes, get<uint32_t>(bytes, entry + 4));
            if (text > bytes.size()) break;
            bytes.replace(text, Bytes::npos, mutate_ptx(bytes.substr(text), other, random));
            put(bytes, entry + 8, bytes.size() - text, 8);
            mend_total(bytes);
            break;
        }
        case 7: {  // an entry once more
            if (entries.empty()) break;
            bytes += Bytes(bytes, entry);
            mend_total(bytes);
            break;
        }
        default:
            for (uint64_t n = 1 + random.below(8); n > 0 && !bytes.empty(); --n)
                bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    }
}

Bytes mutate(const Bytes &input, const Bytes &other, Random &random) {
    Bytes bytes = input;
    for (uint64_t n = 1 + random.below(3); n > 0; --n) mutate_once(bytes, other, random);
    bytes.resize(std::min(bytes.size(), kMostInput));
    return bytes;
}

}  // namespace

const Target kFatbin = {"fatbin", "fatbin", run, mutate, nullptr};

}  // namespace fuzz
