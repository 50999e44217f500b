// Stage lean chooses so, and stage paged_kv by a table of its own: how many blocks share the work, how many warps each
// has, and how many of them may lie on a multiprocessor.
#pragma once

#include <algorithm>
#include <cstdio>
#include <span>

#include "decode_unit.cuh"
#include "launch_decode.h"

struct Blocks {
    int warps;     // of a block
    double each;   // blocks for each multiprocessor that share the work; 0: a block for each head
    int resident;  // blocks that a multiprocessor may hold at a time, the next launch's too; 0: as many as fit
};

// The first line that a problem fits counts. Heads are for each multiprocessor. With two tiles of rows of Q a block has
// 8 warps, and lines with 4 are for others. Blocks of 16 warps are stage paged_kv's alone, for d_head 64.
struct Choice {
    double least_heads, most_heads;
    int most_keys;
    bool any_lengths;    // else sequences have equal lengths and lie in one piece
    Blocks d_128, d_64;  // units of d_head 64 have half the bytes
};
constexpr int any_length = 1 << 30;
constexpr Choice choices[] = {
    // Enough heads to keep the memory busy, and nothing to merge. Where a unit is small, and more blocks would fit, the
    // next launch's go to other multiprocessors.
    {0.36, 1.0, 4096, false, {8, 0, 0}, {8, 0, 1}},
    // All of them at the same time, two on a multiprocessor.
    {1.0, 2.0, 2048, false, {4, 0, 0}, {4, 0, 2}},
    // So many that blocks which end and begin are few among them.
    {1.0, 1e9, any_length, false, {8, 0, 0}, {8, 0, 0}},
    // Whatever the lengths: the blocks of short sequences make room for those that wait.
    {1.0, 1e9, any_length, true, {4, 0, 0}, {8, 0, 0}},
    // Half of the multiprocessors keep the memory busy, with fewer parts; with small units it takes all of them.
    {0.0, 0.36, 16384, true, {8, 0.5, 0}, {8, 1, 1}},
    // Long sequences: of equal lengths, whose shares end with heads, and others.
    {0.0, 1e9, any_length, false, {8, 1, 0}, {8, 1, 1}},
    {0.0, 1e9, any_length, true, {8, 1, 0}, {4, 3, 3}},
};

// What a call is run with.
struct Plan {
    int warps, blocks, resident, heads;
    int head_units, each, extra;  // units of a head, of a block; the first `extra` blocks have one more
    char name[64];                // the configuration, in words
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

inline const Blocks &chosen(std::span<const Choice> table, const FlashDecodeParams &params, double heads) {
    const auto blocks = params.d_head == 64 ? &Choice::d_64 : &Choice::d_128;
    for (const Choice &choice : table)
        if (heads >= choice.least_heads && heads <= choice.most_heads && params.Nmax <= choice.most_keys &&
            (choice.any_lengths || equal_pieces(params)) &&
            ((choice.d_128.warps >= 8 && choice.d_64.warps >= 8) || one_tile(params)))
            return choice.*blocks;
    return table.back().*blocks;
}

// With so much shared memory no more than plan.resident blocks of a kernel that needs `needed` bytes fit on a
// multiprocessor: then the blocks of a launch that begins under another one are spread over all of them.
inline size_t shared_bytes_of(const Plan &plan, size_t needed) {
    if (plan.resident == 0) return needed;
    int device = 0, all = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    constexpr size_t of_the_driver = 1024;  // that each block takes besides
    return std::max(needed, all / (plan.resident + 1) + 1 - of_the_driver);
}

// configuration: of the plan, or "any" where there is none yet.
inline flash::Limits limits_with(const char *title, const char *configuration) {
    return {.title = title,
            .min_compute = 90,
            .Br = 0,
            .Bc = unit,
            .causal = true,
            .grouped_heads = true,
            .log_sum_exp = true,
            .configuration = configuration};
}

// As the table says, or the caller's configuration, such as warps_8+blocks_64 or warps_8+blocks_64+resident_1. Checks
// what it needs of the problem; page_multiple: of which page_size has to be a multiple. most_warps: of the stage's
// blocks.
inline FlashStatus make_plan(const char *title, const FlashDecodeParams *problem, int page_multiple, Plan &plan,
                             std::span<const Choice> table = choices, int most_warps = 8) {
    const FlashStatus status = flash::check_sizes(problem, limits_with(title, "any"), page_multiple);
    if (status != FLASH_OK) return status;
    const FlashDecodeParams &params = *problem;
    const bool has_16 = most_warps == 16 && params.d_head == 64;
    const int rows_each = one_tile(params) ? tile : 2 * tile,
              row_blocks = (rows_of(params) + rows_each - 1) / rows_each;
    const int64_t heads = int64_t{params.B} * params.Hkv * row_blocks, head_units = (params.Nmax - 1) / unit + 1;
    const int64_t units = heads * head_units;
    if (units + (1 << 20) > 0x7fffffff) {
        return flash::fail(FLASH_UNSUPPORTED,
                           "stage '%s' needs fewer than 2^31 - 2^20 units of %d keys; there are %lld", title, unit,
                           static_cast<long long>(units));
    }
    int warps = 0, blocks = 0, resident = 0, end = 0, resident_end = 0;
    if (!params.configuration) {
        const int multiprocessors = static_cast<int>(flash::persistent(1 << 30).x);
        const Blocks &choice = chosen(table, params, static_cast<double>(heads) / multiprocessors);
        warps = one_tile(params) ? choice.warps : 8;
        resident = choice.resident;
        const int64_t most = (units - 1) / warps + 1;  // each block has a unit for each warp
        const auto wanted = static_cast<int64_t>(choice.each * multiprocessors);
        blocks = choice.each > 0 ? static_cast<int>(std::clamp<int64_t>(wanted, 1, most)) : static_cast<int>(heads);
        if (equal_pieces(params) && blocks > heads) blocks -= blocks % heads;  // then shares end with heads
    } else if (const int read = std::sscanf(params.configuration, "warps_%d+blocks_%d%n+resident_%d%n", &warps, &blocks,
                                            &end, &resident, &resident_end);
               read < 2 || params.configuration[read == 2 ? end : resident_end] ||
               (warps != 8 && ((warps != 4 && (warps != 16 || !has_16)) || !one_tile(params))) || blocks <= 0 ||
               (read == 3 && resident <= 0)) {
        return flash::fail(FLASH_UNSUPPORTED,
                           "stage '%s': configuration must be null or one such as warps_8+blocks_64 or "
                           "warps_8+blocks_64+resident_1, with %s warps, 8 for more than 8 rows of Q; it is %s",
                           title, has_16 ? "4, 8 or 16" : "4 or 8", params.configuration);
    }
    blocks = static_cast<int>(std::min<int64_t>(blocks, units));
    plan = {.warps = warps,
            .blocks = blocks,
            .resident = resident,
            .heads = static_cast<int>(heads),
            .head_units = static_cast<int>(head_units),
            .each = static_cast<int>(units / blocks),
            .extra = static_cast<int>(units % blocks),
            .name = {}};
    const int written = std::snprintf(plan.name, sizeof plan.name, "warps_%d+blocks_%d", warps, blocks);
    if (resident) std::snprintf(plan.name + written, sizeof plan.name - written, "+resident_%d", resident);
    return FLASH_OK;
}

// ---- what stage paged_kv makes of a plan ----

// Its blocks are shares of all units that there are.
constexpr Choice choices_by_length[] = {
    // Many heads: two small blocks on each multiprocessor.
    {6.0, 1e9, any_length, true, {4, 1.94, 2}, {4, 1.94, 2}},
    // One short sequence: half of the multiprocessors keep the memory busy, and fewer parts have to be merged.
    {0.0, 0.1, 4096, true, {8, 0.5, 0}, {8, 0.5, 0}},
    // Long ones, and a few: where a unit is small, with twice as many warps or all multiprocessors.
    {0.0, 0.15, 32768, true, {8, 0.5, 0}, {16, 0.5, 1}},
    {0.0, 0.36, 32768, true, {8, 0.5, 0}, {8, 1, 1}},
    {0.36, 1.0, 8192, true, {8, 0.5, 0}, {16, 0.5, 1}},
    {0.0, 1e9, any_length, true, {8, 1, 0}, {8, 1, 1}},
};

// Of a sequence, each with the rows of Q that a block computes.
inline int heads_each(const FlashDecodeParams &params, const Plan &plan) {
    return plan.heads / params.B;
}

// Blocks that share the parts of a KV head in all sequences.
inline int blocks_each(const FlashDecodeParams &params, const Plan &plan) {
    return std::max(1, plan.blocks / heads_each(params, plan));
}

// Of a KV head in all sequences: the blocks have a share each, and each sequence a rest.
inline int most_parts(const FlashDecodeParams &params, const Plan &plan) {
    return blocks_each(params, plan) + params.B;
}
