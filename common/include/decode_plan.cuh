// Stage lean chooses so, and paged_kv too: how many blocks share the work, and how many warps each has.
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "decode_unit.cuh"
#include "launch_decode.h"

// How many warps a block has and how many blocks share the work: some for each multiprocessor, or one for each head.
// The first line that a problem fits counts. Heads are for each multiprocessor. Warps are those for d_head 128: for 64,
// whose units have half the bytes, twice as many, and never more than 8. With two tiles of rows a block has 8 warps.
struct Choice {
    double least_heads, most_heads;
    int most_keys;
    bool any_lengths;  // else sequences have equal lengths and lie in one piece
    int warps;
    double each;  // 0: a block for each head
};
constexpr int any_length = 1 << 30;
constexpr Choice choices[] = {
    {0.36, 1.0, 4096, false, 8, 0},       // enough heads to keep the memory busy, and nothing to merge
    {1.0, 2.0, 2048, false, 4, 0},        // all of them at the same time, two on a multiprocessor
    {1.0, 1e9, any_length, false, 8, 0},  // so many that blocks which end and begin are few among them
    {1.0, 1e9, any_length, true, 4, 2},   // a block's end is under the other's keys
    {0.0, 0.36, 16384, true, 8, 0.5},     // half of the multiprocessors keep the memory busy, with fewer parts
    {0.0, 1e9, any_length, true, 8, 1},
};

// What a call is run with.
struct Plan {
    int warps, blocks, heads;
    int head_units, each, extra;  // units of a head, of a block; the first `extra` blocks have one more
    char name[48];                // the configuration, in words
};

inline int rows_of(const FlashDecodeParams &params) {
    return params.Hq / params.Hkv * params.Nq;
}

inline bool one_tile(const FlashDecodeParams &params) {
    return rows_of(params) <= tile;
}

inline bool equal_pieces(const FlashDecodeParams &params) {
    return !params.lengths && !params.block_table;
}

inline const Choice &chosen(const FlashDecodeParams &params, double heads) {
    for (const Choice &choice : choices)
        if (heads >= choice.least_heads && heads <= choice.most_heads && params.Nmax <= choice.most_keys &&
            (choice.any_lengths || equal_pieces(params)) && (choice.warps == 8 || one_tile(params)))
            return choice;
    return choices[std::size(choices) - 1];
}

// As the table says, or the caller's configuration, such as warps_8+blocks_64.
inline FlashStatus make_plan(const char *title, const FlashDecodeParams &params, Plan &plan) {
    const int rows_each = one_tile(params) ? tile : 2 * tile,
              row_blocks = (rows_of(params) + rows_each - 1) / rows_each;
    const int64_t heads = int64_t{params.B} * params.Hkv * row_blocks, head_units = (params.Nmax - 1) / unit + 1;
    const int64_t units = heads * head_units;
    if (units + (1 << 20) > 0x7fffffff) {
        return flash::fail(FLASH_UNSUPPORTED,
                           "stage '%s' needs fewer than 2^31 - 2^20 units of %d keys; there are %lld", title, unit,
                           static_cast<long long>(units));
    }
    int warps = 0, blocks = 0, end = 0;
    if (!params.configuration) {
        const int multiprocessors = static_cast<int>(flash::persistent(1 << 30).x);
        const Choice &choice = chosen(params, static_cast<double>(heads) / multiprocessors);
        warps = std::min(8, choice.warps * 128 / params.d_head);
        const int64_t most = (units - 1) / warps + 1;  // each block has a unit for each warp
        const auto wanted = static_cast<int64_t>(choice.each * multiprocessors);
        blocks = choice.each > 0 ? static_cast<int>(std::clamp<int64_t>(wanted, 1, most)) : static_cast<int>(heads);
        if (equal_pieces(params) && blocks > heads) blocks -= blocks % heads;  // then shares end with heads
    } else if (std::sscanf(params.configuration, "warps_%d+blocks_%d%n", &warps, &blocks, &end) != 2 ||
               params.configuration[end] || (warps != 8 && (warps != 4 || !one_tile(params))) || blocks <= 0) {
        return flash::fail(FLASH_UNSUPPORTED,
                           "stage '%s': configuration must be null or one such as warps_8+blocks_64, "
                           "with 4 or 8 warps, 8 for more than 8 rows of Q; it is %s",
                           title, params.configuration);
    }
    blocks = static_cast<int>(std::min<int64_t>(blocks, units));
    plan = {.warps = warps,
            .blocks = blocks,
            .heads = static_cast<int>(heads),
            .head_units = static_cast<int>(head_units),
            .each = static_cast<int>(units / blocks),
            .extra = static_cast<int>(units % blocks),
            .name = {}};
    std::snprintf(plan.name, sizeof plan.name, "warps_%d+blocks_%d", warps, blocks);
    return FLASH_OK;
}
