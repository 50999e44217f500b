// Stage tile_scheduler teaches this tile scheduler: which query tile a persistent block works on, and when.
#pragma once

#include "attention.h"

// One unit of a block's work: Br rows of Q of one head, and the tiles of K and V that these rows see.
struct QueryTile {
    int batch, head, kv_head;
    int first_row;      // of Q and O
    int causal_offset;  // row i sees columns 0 to i + causal_offset
    int kv_tiles;       // of K and of V that the rows see; 0 means that there is no more work

    __device__ bool valid() const { return kv_tiles > 0; }
};

// Deals the query tiles to the blocks. Query tiles of one head follow each other, so that neighbouring blocks read the
// same K and V from L2.
//
// Causal query tiles differ in length, because the last rows see the most keys. A block therefore takes two at a time:
// the longest with the shortest, the second longest with the second shortest, and so on. All pairs of a head then see
// the same number of keys. A pair cannot be divided, so the last heads are dealt as single query tiles, the longest
// first. Every other round is dealt from the last block to the first. All blocks then finish at nearly the same time.
template <int Br, int Bc>
struct TileScheduler {
    const FlashParams &params;

    // The query tile that this block works on after `done` others.
    __device__ QueryTile tile(uint32_t done) const {
        const uint32_t row_tiles = uint32_t(params.Nq + Br - 1) / Br;
        const uint32_t heads = params.B * params.Hq;
        const uint32_t blocks = gridDim.x;
        const uint32_t heads_in_pairs = count_heads_in_pairs(row_tiles, heads * row_tiles / (2 * blocks));
        const uint32_t single_heads = heads - heads_in_pairs;

        const uint32_t pairs = heads_in_pairs * row_tiles / 2;
        const uint32_t own_pairs = pairs / blocks + (position_in_round(pairs / blocks) < pairs % blocks);
        uint32_t head_index;  // counts the heads of all batches
        uint32_t rank;        // 0 for the first query tile of a head: the longest, if causal
        if (done < 2 * own_pairs) {
            const uint32_t round = done / 2;
            const uint32_t number = 2 * (round * blocks + position_in_round(round)) + done % 2;
            head_index = number / row_tiles;
            rank = rank_in_pairs(number % row_tiles, row_tiles, head_index);
        } else {
            const uint32_t round = done - own_pairs;
            const uint32_t number = round * blocks + position_in_round(round) - pairs;
            if (number >= single_heads * row_tiles) return {};
            head_index = heads_in_pairs + (params.causal ? number % single_heads : number / row_tiles);
            rank = params.causal ? number / single_heads : number % row_tiles;
        }
        return describe(head_index, params.causal ? row_tiles - 1 - rank : rank);
    }

  private:
    // How many heads are dealt in pairs: as many as leave one round of single query tiles, three rounds of tall ones,
    // or none, if heads have fewer than eight query tiles. These numbers were measured to be the fastest. The number of
    // heads is even: if a head has an odd number of query tiles, its last one forms a pair with the first one of the
    // next head.
    __device__ uint32_t count_heads_in_pairs(uint32_t row_tiles, uint32_t rounds_of_pairs) const {
        const uint32_t single_rounds = row_tiles < 8 ? 0 : Br > 128 ? 3 : 1;
        if (!params.causal || rounds_of_pairs <= single_rounds) return 0;
        return (rounds_of_pairs - single_rounds) * 2 * gridDim.x / row_tiles / 2 * 2;
    }

    // This block's position in a round. A round deals one query tile, or one pair, to every block.
    __device__ uint32_t position_in_round(uint32_t round) const {
        const bool backwards = params.causal && round % 2 == 1;
        return backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }

    // The order within a head: the longest, the shortest, the second longest, and so on. Every other head goes
    // backwards, so that a pair that spans two heads consists of two query tiles of similar length.
    __device__ static uint32_t rank_in_pairs(uint32_t number, uint32_t row_tiles, uint32_t head_index) {
        const uint32_t in_turn = head_index % 2 == 1 ? row_tiles - 1 - number : number;
        return in_turn % 2 == 1 ? row_tiles - 1 - in_turn / 2 : in_turn / 2;
    }

    __device__ QueryTile describe(uint32_t head_index, uint32_t row_tile) const {
        QueryTile tile;
        tile.batch = head_index / params.Hq;
        tile.head = head_index % params.Hq;
        tile.kv_head = tile.head / (params.Hq / params.Hkv);
        tile.first_row = row_tile * Br;
        tile.causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
        const int columns = min(params.Nkv, tile.first_row + Br + tile.causal_offset);
        tile.kv_tiles = max(columns + Bc - 1, Bc) / Bc;  // rows that see no key get one fully masked tile
        return tile;
    }
};
