// The names of instruction classes and hazards in reports.
#include <array>

#include "exec/op.h"
#include "exec/warp.h"

namespace warpsim {

const char *class_name(OpClass cls) {
    static constexpr std::array<const char *, size_t(OpClass::count_)> kNames = {
        "integer",      "fp16",          "fp32",          "fp64",        "special_function",
        "conversion",   "move",          "predicate",     "control",     "barrier",
        "fence",        "load_global",   "store_global",  "load_shared", "store_shared",
        "load_local",   "store_local",   "load_constant", "load_param",  "store_param",
        "load_generic", "store_generic", "atomic",        "shuffle",     "vote",
        "ldmatrix",     "stmatrix",      "tensor",        "async_copy",  "other",
    };
    return kNames[size_t(cls)];
}

const char *hazard_name(HazardKind kind) {
    static constexpr std::array<const char *, size_t(HazardKind::count_)> kNames = {
        "out_of_bounds",     "misaligned", "uninitialized_shared", "shared_race",      "async_pending",
        "divergent_barrier", "deadlock",   "missing_lanes",        "invalid_address",  "trap",
        "assertion",         "budget",     "illegal_instruction",  "invalid_argument",
    };
    return kNames[size_t(kind)];
}

}  // namespace warpsim
