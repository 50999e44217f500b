// Stage no_scratch_pass teaches how the last units are cut, so that all blocks end at one time: their row tiles, unit
// after unit, are divided into as many ranges as there are blocks. A range that ends within a unit leaves sums of its
// dK and dV, and the one with the unit's last row tile takes them.
#pragma once

#include <algorithm>

#include "backward_mainloop.cuh"

// What one range has summed up of a unit's dV and dK, as the consumers' registers hold it.
template <int d_head>
struct Sums {
    float4 gradients[2][d_head / 8][128 * consumers];
    int there, unused[3];  // 1: the numbers are complete
};

// The row tiles of a unit that one block works on, in each head of Q: all that see its keys, or a part of them.
template <int d_head>
struct Piece {
    int first, end;
    int weight;          // of all that is counted of a unit, how much
    int taken;           // ranges that have row tiles before the first one and leave their sums for this one; -1: this
                         // one leaves its own for the range that has the unit's last row tile
    Sums<d_head> *sums;  // the first that is taken, or the one that is left

    __device__ bool leaves() const { return taken < 0; }
};

// How units are handed out, in the order of their numbers.
template <int d_head>
struct Cuts {
    int units, row_tiles;  // all units; row tiles of each
    int weight;            // of a unit: its row tiles where units are cut, else 1
    int whole;             // units that are handed out whole, before the ranges
    int ranges;
    Sums<d_head> *sums;  // one for each range

    // A range's first row tile, counted from the first cut unit's.
    __device__ int begin(int range) const {
        const int tiles = (units - whole) * row_tiles;
        return range * (tiles / ranges) + min(range, tiles % ranges);
    }
};

constexpr int last_heads = 8;  // whose units are handed out together

// The units are numbered in the order in which blocks ask for them: head by head, so that heads are complete one after
// the other. The first keys of a head come first, because with a causal mask most queries see them. The last heads come
// together, the first keys of all of them first: the blocks' last units are short ones then, and end at like times.
__device__ inline Unit unit_of(const FlashBackwardParams &params, int number) {
    const int key_tiles = (params.Nkv + Bc - 1) / Bc;
    const int heads = params.B * params.Hkv, together = min(last_heads, heads), first = heads - together;
    const int place = number - first * key_tiles;
    const int head = place < 0 ? number / key_tiles : first + place % together;
    return {place < 0 ? number % key_tiles : place / together, head % params.Hkv, head / params.Hkv};
}

// The work of one block, which its producer's thread takes from the queue.
template <int d_head, int Br, bool cuts_units>
struct UnitQueue {
    const Cuts<d_head> &cuts;
    int *const counter;
    int number = 0;  // taken last: of a whole unit, or behind these of a range
    int rest = 0;    // row tiles at the beginning of the range that are left

    __device__ void take() { number = atomicAdd(counter, 1); }
    __device__ bool needs_more() const { return !cuts_units || rest == 0; }

    // The next unit, and which of its row tiles. A block works on its range from the end. So the sums that it leaves
    // are made first, and those that it takes are needed last, when they have long been there. They come from ranges
    // that were taken earlier, so that no circle of blocks can wait for each other.
    __device__ Unit next(const FlashBackwardParams &params, Piece<d_head> &piece) {
        piece = {0, cuts.row_tiles, cuts.weight, 0, nullptr};
        const int range = number - cuts.whole;
        if (!cuts_units || range < 0) {
            const Unit unit = number < cuts.units ? unit_of(params, number) : Unit{-1, 0, 0};
            const KeyTile<Br, Bc> keys(params, unit.key_tile, unit.kv_head, unit.batch);
            piece.first = keys.first_row_tile;
            return unit;
        }
        if (range >= cuts.ranges) return {-1, 0, 0};
        const int begin = cuts.begin(range);
        if (rest == 0) rest = cuts.begin(range + 1) - begin;
        const int end = begin + rest;
        const int unit = (end - 1) / cuts.row_tiles;
        const int first = unit * cuts.row_tiles;  // row tile of the unit
        piece.first = max(begin - first, 0);
        piece.end = end - first;
        piece.weight = piece.end - piece.first;
        rest -= piece.weight;
        if (piece.end < cuts.row_tiles) {
            piece.taken = -1;
            piece.sums = cuts.sums + range;
        } else if (piece.first > 0) {
            do ++piece.taken;
            while (cuts.begin(range - piece.taken) > first);
            piece.sums = cuts.sums + range - piece.taken;
        }
        return unit_of(params, cuts.whole + unit);
    }
};

// Adds to dV (which = 0) or dK (1) of this thread what `taken` ranges have left of it, and leaves zeros there. Or
// leaves it itself, where `taken` is -1.
template <int which, int d_head>
__device__ __forceinline__ void merge_sums(float (&X)[d_head / 2], Sums<d_head> *const &first, int taken) {
    for (int range = 0; range < taken; ++range) {
        Sums<d_head> &sums = first[range];
        const int thread = ptx::thread_number();
        if (which == 0 && thread % 32 == 0) {
            while (ptx::load_relaxed(&sums.there) == 0) __nanosleep(100);
            ptx::load_acquire(&sums.there);
        }
        __syncwarp();  // every lane reads after lane 0 has seen that the numbers are there
#pragma unroll
        for (int i = 0; i < d_head / 8; ++i) {
            const float4 sum = sums.gradients[which][i][thread];
            X[4 * i] += sum.x;
            X[4 * i + 1] += sum.y;
            X[4 * i + 2] += sum.z;
            X[4 * i + 3] += sum.w;
            sums.gradients[which][i][thread] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    if (taken >= 0) return;
    Sums<d_head> *const sums = first;
    const int thread = ptx::thread_number();
#pragma unroll
    for (int i = 0; i < d_head / 8; ++i)
        sums->gradients[which][i][thread] = make_float4(X[4 * i], X[4 * i + 1], X[4 * i + 2], X[4 * i + 3]);
}

// ---- host ----

constexpr int least_saved = 4;  // tiles, of each block: what a cut costs, about
constexpr int least_range = 4;  // tiles

// Without a mask all units are equal, and after the last whole round `rest` units are left for the blocks. They are cut
// where this saves enough. The round before is cut with them, so that a unit lies in two ranges at most; if there is
// none, in as many as there are blocks for it.
template <int d_head>
Cuts<d_head> cut_units(const FlashBackwardParams &params, int units, int blocks) {
    const int Br = rows_of_tile(d_head);
    const int row_tiles = (params.Nq + Br - 1) / Br, group = params.Hq / params.Hkv;
    const int key_tiles = (params.Nkv + Bc - 1) / Bc;
    Cuts<d_head> cuts{
        .units = units, .row_tiles = row_tiles, .weight = 1, .whole = units, .ranges = 0, .sums = nullptr};
    const int rest = units % blocks;
    const int64_t saved = int64_t{row_tiles} * group * (blocks - rest);
    if (params.causal || rest == 0 || saved < int64_t{least_saved} * blocks) return cuts;
    if (int64_t{key_tiles} * row_tiles > 0x7fffffff) return cuts;  // a counter has no room for them
    cuts.weight = row_tiles;
    cuts.whole = units < blocks ? 0 : units - rest - blocks;
    const int64_t tiles = int64_t{units - cuts.whole} * row_tiles * group;
    cuts.ranges = static_cast<int>(std::min<int64_t>(blocks, tiles / std::max(least_range, group)));
    return cuts;
}

// What a call needs of the workspace, behind what workspace_of() knows: a counter for each head of K and V, and the
// sums of cut units.
template <int d_head>
struct Plan {
    Cuts<d_head> cuts;
    size_t sums_begin, workspace_bytes;

    explicit Plan(const FlashBackwardParams &params) {
        const int heads = params.B * params.Hkv, units = heads * ((params.Nkv + Bc - 1) / Bc);
        cuts = cut_units<d_head>(params, units, flash::persistent(0x7fffffff).x);
        sums_begin = backward_workspace_bytes(params, rows_of_tile(d_head)) + (size_t(heads) + 3) / 4 * 16;
        workspace_bytes = sums_begin + cuts.ranges * sizeof(Sums<d_head>);
        cuts.sums = reinterpret_cast<Sums<d_head> *>(static_cast<char *>(params.workspace) + sums_begin);
    }
};
