#pragma once
#include <stdint.h>

struct alignas(64) CUtensorMap {
    uint64_t opaque[16];
};
