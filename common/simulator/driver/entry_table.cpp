// Every function that the driver exports. Those that nothing else here defines are not supported: a program that needs
// one of them learns which.
//
// The toolkit's prototypes stay out of this file: the arguments are not looked at.
#include "driver/entry_table.h"

#include <cstring>
#include <string>

#include "runtime/runtime.h"

namespace {

constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int not_supported(const char *name) {
    warpsim::rt::say(std::string(name) + " is not supported");
    return kNotSupported;
}

}  // namespace

// Weak: a definition in another file takes its place.
#define SYMBOL(symbol, name, since, per_thread)                            \
    extern "C" __attribute__((weak, visibility("default"))) int symbol() { \
        return not_supported(#symbol);                                     \
    }
#include "driver/symbols.h"
#undef SYMBOL

namespace warpsim::driver {
namespace {

struct Row {
    const char *name;
    unsigned since;
    bool per_thread;
    int (*function)();
};

constexpr Row kRows[] = {
#define SYMBOL(symbol, name, since, per_thread) {#name, since, per_thread, &symbol},
#include "driver/symbols.h"
#undef SYMBOL
};

}  // namespace

Entry find_entry(const char *name, unsigned version, bool per_thread) {
    Entry entry;
    const Row *best = nullptr;
    const auto better = [&](const Row &row) {
        return !best || (row.per_thread != best->per_thread ? row.per_thread : row.since > best->since);
    };
    for (const Row &row : kRows) {
        if (std::strcmp(row.name, name) != 0) continue;
        entry.known = true;
        if (row.since <= version && (per_thread || !row.per_thread) && better(row)) best = &row;
    }
    if (best) entry.function = reinterpret_cast<void *>(best->function);
    return entry;
}

}  // namespace warpsim::driver
