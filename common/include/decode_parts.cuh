// Stage short_ends teaches how the last block of a head merges what warps and blocks leave; here the number of a
// block's warps is a parameter.
#pragma once

#include "decode_unit.cuh"

// ---- merge ----

// What the warps leave for one another when their keys are over.
template <int warps, int d_head, int row_tiles>
struct Results {
    float O[warps][row_tiles * tile][d_head + 4];  // the rows 16 bytes apart in the banks
    float row_max[warps][row_tiles * tile], row_sum[warps][row_tiles * tile];
};

// What part of the whole the sums of a warp or of a part are: those without keys count nothing. exp2 of their -infinity
// less a whole without keys would be a NaN.
__device__ float weight_of(float row_max, float whole_max) {
    return row_max == -INFINITY ? 0.0f : ptx::exp2(row_max - whole_max);
}

// a + weight * b
__device__ float4 add_weighted(float4 a, float weight, float4 b) {
    return make_float4(a.x + weight * b.x, a.y + weight * b.y, a.z + weight * b.z, a.w + weight * b.w);
}

// Four columns of a row's O, not divided by the sum, and the row's maximum and sum.
struct RowPiece {
    float4 O = {};
    float row_max = -INFINITY, row_sum = 0.0f;
};

// The warp's sums, for the others.
template <int warps, int d_head, int row_tiles>
__device__ void share(Results<warps, d_head, row_tiles> &results, const WarpState<d_head, row_tiles> &state) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = t * tile + lane % 4 * 2 + j;
            float row_sum = state.row_sum[t][j];
#pragma unroll
            for (int step = 4; step < 32; step *= 2) row_sum += __shfl_xor_sync(0xffffffff, row_sum, step);
            if (lane / 4 == 0) {
                results.row_max[warp][row] = state.row_max[t][j];
                results.row_sum[warp][row] = row_sum;
            }
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {
                results.O[warp][row][16 * k + lane / 4] = state.O[t][k][j];
                results.O[warp][row][16 * k + 8 + lane / 4] = state.O[t][k][j + 2];
            }
        }
}

// Puts the warps' results of four columns of a row together.
template <int warps, int d_head, int row_tiles>
__device__ RowPiece merge_warps(const Results<warps, d_head, row_tiles> &results, int row, int column) {
    RowPiece merged;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) merged.row_max = fmaxf(merged.row_max, results.row_max[warp][row]);
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) {
        const float weight = weight_of(results.row_max[warp][row], merged.row_max);
        merged.row_sum += weight * results.row_sum[warp][row];
        merged.O = add_weighted(merged.O, weight, *reinterpret_cast<const float4 *>(&results.O[warp][row][column]));
    }
    return merged;
}

// ---- parts ----

// The workspace. A slot has what a block leaves of a head.
template <int d_head, int row_tiles>
struct Parts {
    uint32_t *arrived;                     // [heads]: blocks that have left their part; zeros between the launches
    float (*O)[row_tiles * tile][d_head];  // [slots]: not divided by the sum
    float2 (*softmax)[row_tiles * tile];   // [slots]: row_max and row_sum
};

// Of the counters, rounded up so that the slots are aligned.
__host__ __device__ inline size_t counter_bytes(int64_t heads) {
    return (heads * sizeof(uint32_t) + 15) / 16 * 16;
}

// Of a slot for `rows` rows.
inline size_t slot_bytes(int rows, int d_head) {
    return rows * (d_head * sizeof(float) + sizeof(float2));
}

template <int d_head, int row_tiles>
__device__ Parts<d_head, row_tiles> parts_in(void *workspace, int64_t heads, int64_t slots) {
    Parts<d_head, row_tiles> parts;
    auto *O = static_cast<unsigned char *>(workspace) + counter_bytes(heads);
    auto *softmax = O + slots * sizeof(*parts.O);
    parts.arrived = static_cast<uint32_t *>(workspace);
    parts.O = reinterpret_cast<decltype(parts.O)>(O);
    parts.softmax = reinterpret_cast<decltype(parts.softmax)>(softmax);
    return parts;
}

// Merges the warps' results and stores them as a part: a thread has four columns of a row at a time.
template <int warps, int d_head, int row_tiles>
__device__ void store_part(const Results<warps, d_head, row_tiles> &results, const Parts<d_head, row_tiles> &parts,
                           int64_t slot, int rows) {
    for (int i = threadIdx.x; i < rows * (d_head / 4); i += 32 * warps) {
        const int row = i / (d_head / 4), column = i % (d_head / 4) * 4;
        const RowPiece merged = merge_warps(results, row, column);
        *reinterpret_cast<float4 *>(&parts.O[slot][row][column]) = merged.O;
        if (column == 0) parts.softmax[slot][row] = make_float2(merged.row_max, merged.row_sum);
    }
}

// Tells that this block has left its part of a head: true in the last one of the `blocks` that share it. That block
// then sees the parts of the others: the barrier and the counter, which releases and acquires, order what they wrote
// before what it reads.
__device__ bool is_last_block(bool &last_block, uint32_t &arrived, int blocks) {
    __syncthreads();  // all threads have stored their share of the part
    if (threadIdx.x == 0) {
        last_block = ptx::add_acq_rel(&arrived, 1) == blocks - 1;
        if (last_block) arrived = 0;  // for the next launch
    }
    __syncthreads();
    return last_block;
}

// Puts `count` parts where the warps' results were: each warp has every `warps`-th one. So that a lane waits for memory
// once and not once for each row, it asks for its columns of all rows together.
template <int warps, int d_head, int row_tiles>
__device__ void gather_parts(Results<warps, d_head, row_tiles> &results, const Parts<d_head, row_tiles> &parts,
                             int64_t first_slot, int count, int rows) {
    constexpr int row_lanes = d_head / 4, pieces = row_tiles * tile * row_lanes / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % row_lanes * 4;
    RowPiece sums[pieces];  // of row piece * 32 / row_lanes + lane / row_lanes
    for (int number = warp; number < count; number += warps) {
        RowPiece part[pieces];
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) {
            const int row = piece * 32 / row_lanes + lane / row_lanes;
            if (row < rows) {
                const float2 softmax = parts.softmax[first_slot + number][row];
                part[piece].O = *reinterpret_cast<const float4 *>(&parts.O[first_slot + number][row][column]);
                part[piece].row_max = softmax.x;
                part[piece].row_sum = softmax.y;
            }
        }
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) {
            RowPiece &sum = sums[piece];
            const float new_max = fmaxf(sum.row_max, part[piece].row_max);
            const float old_weight = weight_of(sum.row_max, new_max), weight = weight_of(part[piece].row_max, new_max);
            sum.row_max = new_max;
            sum.row_sum = sum.row_sum * old_weight + weight * part[piece].row_sum;
            sum.O = add_weighted(add_weighted({}, old_weight, sum.O), weight, part[piece].O);
        }
    }
#pragma unroll
    for (int piece = 0; piece < pieces; ++piece) {
        const int row = piece * 32 / row_lanes + lane / row_lanes;
        *reinterpret_cast<float4 *>(&results.O[warp][row][column]) = sums[piece].O;
        if (column == 0) {
            results.row_max[warp][row] = sums[piece].row_max;
            results.row_sum[warp][row] = sums[piece].row_sum;
        }
    }
}

// Four columns of a row, of all `count` parts of a head in their order. own: those of this block's part, `number`,
// which need not be in its slot. So that a lane waits for memory once, it asks for several parts together.
template <int d_head, int row_tiles>
__device__ RowPiece merge_parts(const Parts<d_head, row_tiles> &parts, int64_t first_slot, int number, int count,
                                const RowPiece &own, int row, int column) {
    constexpr int together = 8;
    RowPiece sum;
    for (int first = 0; first < count; first += together) {
        RowPiece pieces[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int64_t slot = first_slot + first + i;
            if (first + i == number) {
                pieces[i] = own;
            } else if (first + i < count) {
                const float2 softmax = parts.softmax[slot][row];
                pieces[i] = {*reinterpret_cast<const float4 *>(&parts.O[slot][row][column]), softmax.x, softmax.y};
            }
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            if (first + i >= count) break;
            const float new_max = fmaxf(sum.row_max, pieces[i].row_max);
            const float old_weight = weight_of(sum.row_max, new_max), weight = weight_of(pieces[i].row_max, new_max);
            sum.row_max = new_max;
            sum.row_sum = sum.row_sum * old_weight + weight * pieces[i].row_sum;
            sum.O = add_weighted(add_weighted({}, old_weight, sum.O), weight, pieces[i].O);
        }
    }
    return sum;
}
