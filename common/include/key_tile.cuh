// Stage backward_wgmma teaches this walk over the query tiles that see a block's keys.
#pragma once

#include "attention_backward.h"

// A tile of Q of one head.
struct QueryTile {
    int head, row_tile;
};

// The keys of a block, and the query tiles that see them: in each head of Q that shares the head of K and V, those from
// first_row_tile on.
template <int Br, int Bc>
struct KeyTile {
    int batch, kv_head, first_key;
    int causal_offset;  // row i sees columns 0 to i + causal_offset
    int first_row_tile, row_tiles;
    int first_head, end_head;

    __device__ KeyTile(const FlashBackwardParams &params, int key_tile, int kv_head, int batch)
        : batch(batch), kv_head(kv_head), first_key(key_tile * Bc) {
        const int group = params.Hq / params.Hkv;
        causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
        first_row_tile = max(first_key - causal_offset, 0) / Br;
        row_tiles = (params.Nq + Br - 1) / Br;
        first_head = kv_head * group;
        end_head = first_head + group;
    }

    __device__ QueryTile begin() const { return {first_head, first_row_tile}; }
    __device__ bool contains(const QueryTile &tile) const { return tile.head < end_head; }
    __device__ void advance(QueryTile &tile) const {
        ++tile.row_tile;
        if (tile.row_tile == row_tiles) {
            tile.row_tile = first_row_tile;
            ++tile.head;
        }
    }
    // Counts the query tiles of all heads and batches.
    __device__ int64_t number(const FlashBackwardParams &params, const QueryTile &tile) const {
        return (int64_t{batch} * params.Hq + tile.head) * row_tiles + tile.row_tile;
    }
};
