// How units are handed out, and how the last ones are cut, so that all blocks end at one time: their row tiles, unit
// after unit, are divided into as many ranges as there are blocks. A range that ends within a unit leaves sums of its
// dK and dV, and the range with the unit's last row tile takes them.
#pragma once

#include <algorithm>

#include "backward_mainloop.cuh"
#include "launch_backward.h"

// The numbers behind Workspace::counter, all 0 between calls. A head is one of K and V here, with the heads of Q that
// share it.
struct Counters {
    int next_unit, next_part, next_tile, tiles_there, warps_done, unused[3];

    // For each head: how many of its row tiles' statistics are there, unless a kernel before has computed them, and the
    // weights of all pieces whose dQ has been added.
    __device__ int *added() { return reinterpret_cast<int *>(this + 1); }
};

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
    int weight;  // how much of its unit's
    // Ranges that have row tiles of the unit before the first one: this one takes their sums. -1: it leaves its own to
    // the range that has the unit's last row tile.
    int taken;
    Sums<d_head> *sums;  // the first that is taken, or what is left

    __device__ bool leaves() const { return taken < 0; }
};

// A unit's keys, and of the row tiles that see them those from first_row_tile on, before the end.
template <int Br>
struct PieceKeys : KeyTile<Br, Bc> {
    int end_row_tile = this->row_tiles;

    using KeyTile<Br, Bc>::KeyTile;
    __device__ void narrow(int first, int end) {
        this->first_row_tile = first;
        end_row_tile = end;
    }
    __device__ void advance(QueryTile &tile) const {
        ++tile.row_tile;
        if (tile.row_tile == end_row_tile) {
            tile.row_tile = this->first_row_tile;
            ++tile.head;
        }
    }
};

// How units are handed out, in the order of their numbers.
template <int d_head>
struct Cuts {
    int heads, units;  // of K and V; of all heads
    int row_tiles;     // of a unit
    int weight;        // of a unit: its row tiles where units are cut, else 1
    int whole;         // units that are handed out whole, before the ranges
    int prepared;      // heads of K and V whose statistics a kernel before this one computes
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

// The work of one block, which its producer's thread takes from the queue: whole units, then ranges.
template <int d_head, int Br, bool cuts_units>
struct UnitQueue {
    const Cuts<d_head> &cuts;
    int *const counter;
    int number = 0;  // taken last: of a whole unit, or of a range after all of these
    int rest = 0;    // row tiles of the range that are left, at its beginning

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
        const int first = unit * cuts.row_tiles;  // the unit's
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

constexpr int least_saved = 4;  // tiles: what a cut costs each block, about
constexpr int least_range = 4;  // tiles

// Measured on an H200.
constexpr int least_keys = 1000;         // of a row, so that warps have time for other rows' statistics
constexpr int rounds_times_keys = 3072;  // rounds of units that begin before these warps are ahead of them

// The heads of K and V whose statistics a kernel before the main one computes: those of the first units, while the
// warps that convert dQ compute the others'. The fewer products a row has, the more heads. All where these warps would
// be late.
inline int prepared_heads(const FlashBackwardParams &params, int blocks) {
    const int heads = params.B * params.Hkv, key_tiles = (params.Nkv + Bc - 1) / Bc;
    const int keys = params.causal ? (params.Nkv + Bc) / 2 : params.Nkv;  // of a row, about
    if (keys < least_keys) return heads;
    const int64_t units = int64_t{rounds_times_keys} * blocks / keys;
    return static_cast<int>(std::min<int64_t>(heads, (units + key_tiles - 1) / key_tiles));
}

// Without a mask all units are equal, and after the last whole round some are left, fewer than there are blocks. They
// are cut where this saves enough, and those of the round before with them: so a unit lies in two ranges at most. Where
// there is no round before, it lies in as many as there are blocks for it.
template <int d_head>
Cuts<d_head> cut_units(const FlashBackwardParams &params, int blocks) {
    const int key_tiles = (params.Nkv + Bc - 1) / Bc, group = params.Hq / params.Hkv, Br = rows_of_tile(d_head);
    Cuts<d_head> cuts{};
    cuts.heads = params.B * params.Hkv;
    cuts.units = cuts.whole = cuts.heads * key_tiles;
    cuts.row_tiles = (params.Nq + Br - 1) / Br;
    cuts.prepared = prepared_heads(params, blocks);
    cuts.weight = 1;
    const int left = cuts.units % blocks;
    const int64_t saved = int64_t{cuts.row_tiles} * group * (blocks - left);         // tiles, of all blocks
    const bool counted = int64_t{key_tiles + group} * cuts.row_tiles <= 0x7fffffff;  // a counter has room for them
    if (params.causal || left == 0 || saved < int64_t{least_saved} * blocks || !counted) return cuts;
    cuts.weight = cuts.row_tiles;
    cuts.whole = cuts.units < blocks ? 0 : cuts.units - left - blocks;
    const int64_t tiles = int64_t{cuts.units - cuts.whole} * cuts.row_tiles * group;
    cuts.ranges = static_cast<int>(std::min<int64_t>(blocks, tiles / std::max(least_range, group)));
    return cuts;
}

// What a call needs of the workspace, behind what workspace_of() knows: a counter for each head of K and V, and the
// sums of cut units.
template <int d_head>
struct Plan {
    Cuts<d_head> cuts;
    size_t workspace_bytes;

    explicit Plan(const FlashBackwardParams &params) : cuts(cut_units<d_head>(params, flash::persistent(1 << 30).x)) {
        const size_t heads = (static_cast<size_t>(cuts.heads) + 3) / 4 * 16;
        const size_t counters = sizeof(Counters) - 16 + heads;  // 16 bytes are counted already
        const size_t begin = backward_workspace_bytes(params, rows_of_tile(d_head)) + counters;
        if (params.workspace)  // describe() has none
            cuts.sums = reinterpret_cast<Sums<d_head> *>(static_cast<char *>(params.workspace) + begin);
        workspace_bytes = begin + cuts.ranges * sizeof(Sums<d_head>);
    }
};
