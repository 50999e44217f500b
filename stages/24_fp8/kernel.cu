// Stage 29: FP8. Q, K, V and P are e4m3, a byte each, and the tensor cores multiply twice as many in a clock. They take
// V transposed alone, are exact to 13 bits alone, and P has but 18 powers of two: each is a piece of this kernel.
// Query tiles, tiles of K and V, the producer and the stream without gaps are stage 28's. Further warps transpose V.

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

template <int d_head>
struct Shape {
    static constexpr int consumers = d_head == 64 ? 3 : 2;    // warpgroups that compute
    static constexpr int Br = 64 * consumers;                 // rows of Q (and of S, P, O) that a block works on
    static constexpr int kv_stages = d_head == 64 ? 4 : 3;    // buffers for tiles of K, of V and of V transposed
    static constexpr int transposers = d_head == 64 ? 2 : 4;  // the block's last warps; four are a warpgroup
    static constexpr int consumer_registers = d_head == 64 ? 160 : 224;  // a thread
    static constexpr bool long_turns = consumers == 2;  // a turn goes on to the end of O = rescale O + PV
    static constexpr int columns = d_head + 8;          // of V, and eight of ones: the sum of P is a column of PV
};
constexpr int threads = 512;         // consumers, and a warpgroup (d_head 64) or two for producer and transposers
constexpr int other_registers = 32;  // a thread of these; with the consumers' together what 4 x 128 were at the launch
constexpr int Bc = 128;              // rows of K and V in a tile
constexpr int q_stages = 2;          // buffers for tiles of Q
constexpr float lowest = -0x1p127f;  // below all scores; finite, so that a score of -infinity less it is no NaN
// P of a row's maximum is 2^headroom: e4m3 ends at 448 above, and below at 2^-9, with full precision at 2^-6.
constexpr float headroom = 8;

// One piece of the work: rows of Q from first_row on, of one head. They see `tiles` tiles of K and V, none
// where there is no more work; row i sees columns 0 to i + diagonal.
struct QueryTile {
    int batch, head, kv_head, first_row, diagonal, tiles;
};

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <int d_head>
struct Shared {
    static constexpr int Br = Shape<d_head>::Br, kv_stages = Shape<d_head>::kv_stages;
    e4m3 Q[q_stages][Br * d_head], K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];  // [rows][d_head]
    e4m3 V_transposed[kv_stages][Shape<d_head>::columns * Bc];                            // [columns][Bc]
    uint64_t Q_full[q_stages], Q_empty[q_stages];                                         // mbarriers
    uint64_t K_full[kv_stages], K_empty[kv_stages], V_full[kv_stages], V_empty[kv_stages];
    uint64_t transposed_full[kv_stages], transposed_empty[kv_stages];
    QueryTile query_tiles[q_stages];  // which ones lie in Q
};

// The query tile that this block works on when it has had q. Which, and why, stage 26 says.
__device__ QueryTile query_tile(const FlashParams &params, uint32_t query_tiles, uint32_t q, int Br, int Bc) {
    const uint32_t row_tiles = uint32_t(params.Nq + Br - 1) / Br, heads = query_tiles / row_tiles, blocks = gridDim.x;
    const uint32_t rounds = query_tiles / (2 * blocks), last = row_tiles < 8 ? 0 : Br > 128 ? 3 : 1;  // of pairs
    const uint32_t in_pairs = params.causal && rounds > last ? (rounds - last) * 2 * blocks / row_tiles / 2 * 2 : 0;
    const uint32_t by_length = heads - in_pairs, pairs = in_pairs * row_tiles / 2;
    const auto in_round = [&](uint32_t n) { return params.causal && n % 2 ? blocks - 1 - blockIdx.x : blockIdx.x; };
    const uint32_t own = pairs / blocks + (in_round(pairs / blocks) < pairs % blocks);  // of the pairs
    const uint32_t round = q < 2 * own ? q / 2 : q - own, t = round * blocks + in_round(round);
    uint32_t number = (2 * t + q % 2) / row_tiles, place = (2 * t + q % 2) % row_tiles;  // of the head; in its order
    if (t < pairs) {
        if (number % 2) place = row_tiles - 1 - place;
        place = place % 2 ? row_tiles - 1 - place / 2 : place / 2;
    } else {
        if (t - pairs >= by_length * row_tiles) return {};
        number = in_pairs + (params.causal ? (t - pairs) % by_length : t / row_tiles);
        place = params.causal ? (t - pairs) / by_length : t % row_tiles;
    }
    const int batch = number / params.Hq, head = number % params.Hq, kv_head = head / (params.Hq / params.Hkv);
    const int first_row = (params.causal ? row_tiles - 1 - place : place) * Br;
    const int diagonal = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
    const int columns = min(params.Nkv, first_row + Br + diagonal);            // of K and V that the rows see
    const int tiles = max(columns + Bc - 1, Bc) / Bc;                          // one, all masked, if they see no key
    return {batch, head, kv_head, first_row, diagonal, tiles};
}

// Where a consumer is in the queue of K or of V: the buffer, and the parity of its barriers.
template <int buffers>
struct Place {
    uint32_t buffer = 0, parity = 0;
    // This warp has read the tile: the buffer is free as far as it goes. On to the next one.
    __device__ void leave(uint64_t *empty, int lane) {
        if (lane == 0) ptx::mbarrier_arrive(&empty[buffer]);
        if (++buffer == buffers) buffer = 0, parity ^= 1;
    }
};

// Announces a tile of so many bytes at `full` and asks for it, the rows from `row` on of one head, without waiting.
__device__ void load_tile(void *tile, int bytes, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// What is added to a descriptor for a place so many bytes further.
__device__ constexpr uint64_t further(uint32_t bytes) {
    return bytes / 16;
}

// The largest of x over the four lanes that hold one row of S.
__device__ float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// A query tile as the producer has written it down. The compiler knows that all lanes have the same, of what the loop
// over its tiles uses.
__device__ QueryTile handed_over(const QueryTile &written) {
    QueryTile tile = written;
    for (int *field : {&tile.first_row, &tile.diagonal, &tile.tiles}) *field = __shfl_sync(0xffffffff, *field, 0);
    __syncwarp();  // all have read it before one of them gives it back
    return tile;
}

// Four lanes that hold a row, four registers each: afterwards register i of lane k is what register k of lane i was.
__device__ void transpose(uint32_t (&x)[4], int lane) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2)  // lanes that differ in one bit exchange the registers that do
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & step) continue;
            const bool high = lane & step;
            const uint32_t got = __shfl_xor_sync(0xffffffff, high ? x[i] : x[i + step], step);
            x[i] = high ? got : x[i], x[i + step] = high ? x[i + step] : got;
        }
}

// A tile of V to [d_head][Bc], as the tensor cores take bytes: pieces of 32 rows by 16 columns (a chunk), each `step`th
// from `first` on. Of 16 rows place 4 c + e gets row 2 c + e % 2 + 8 (e / 2): so are the columns of P held.
template <int d_head>
__device__ void transpose_tile(const e4m3 *V, e4m3 *transposed, int first, int step, int lane) {
    // The lane's row of V for ldmatrix; of V transposed for stmatrix, where rows 0, 2, 4, 6, 9, 11, 13 and 15 go
    // together, and the other eight: they are in eight different banks.
    const uint32_t from = ptx::shared_address(V) + lane * d_head + lane * d_head / 128 % (d_head / 16) * 16;
    const int row = 2 * (lane % 8) + ((lane % 8 >= 4) ^ lane / 8 % 2);
    const uint32_t to = ptx::shared_address(transposed) + row * Bc + (row % 8 * 16 ^ lane / 16 * 16);
    const uint32_t even = 0x6420, odd = 0x7531;  // a register has two rows of V, by two columns: bytes of one column
    const uint32_t one = lane < 16 ? even : odd, other = lane < 16 ? odd : even;
#pragma unroll 1  // for few registers
    for (int piece = first; piece < Bc / 32 * (d_head / 16); piece += step) {
        const int rows = piece % (Bc / 32) * 32, chunk = piece / (Bc / 32);
        uint32_t x[4];
        ptx::ldmatrix_x4_trans(x, from + rows * d_head ^ chunk * 16);
        const uint32_t columns[4] = {__byte_perm(x[0], x[1], one), __byte_perm(x[0], x[1], other),
                                     __byte_perm(x[2], x[3], one), __byte_perm(x[2], x[3], other)};
        ptx::stmatrix_x4(to + chunk * 16 * Bc ^ rows, columns);
    }
}

// grid: as many blocks as multiprocessors, or as query tiles if they are fewer
template <int d_head>
__global__ void __launch_bounds__(threads, 1)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<Shared<d_head> *>(shared_bytes);
    constexpr int Br = Shape<d_head>::Br, kv_stages = Shape<d_head>::kv_stages, consumers = Shape<d_head>::consumers;
    constexpr int transposers = Shape<d_head>::transposers, columns = Shape<d_head>::columns;
    constexpr bool long_turns = Shape<d_head>::long_turns;
    const int query_tiles = params.Hq * params.B * ((params.Nq + Br - 1) / Br);
    constexpr int row_bytes = d_head, tile_bytes = Bc * d_head, Q_bytes = Br * d_head;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), warpgroup = warp / 4;  // the compiler knows: uniform
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < q_stages; ++s) {
            ptx::mbarrier_init(&shared.Q_full[s], 1);
            ptx::mbarrier_init(&shared.Q_empty[s], 4 * consumers + transposers);
        }
        for (int s = 0; s < kv_stages; ++s) {
            ptx::mbarrier_init(&shared.K_full[s], 1);  // the producer arrives; the bytes are counted besides
            ptx::mbarrier_init(&shared.V_full[s], 1);
            ptx::mbarrier_init(&shared.K_empty[s], 4 * consumers);  // each warp arrives when it has read the buffer
            ptx::mbarrier_init(&shared.V_empty[s], transposers);
            ptx::mbarrier_init(&shared.transposed_full[s], transposers);
            ptx::mbarrier_init(&shared.transposed_empty[s], 4 * consumers);
        }
        ptx::fence_mbarrier_init();
    }
    for (int i = threadIdx.x; i < kv_stages * 8 * Bc / 4; i += threads) {  // the columns of ones, four at a time
        const int s = i / (8 * Bc / 4), place = i % (8 * Bc / 4);
        reinterpret_cast<uint32_t *>(shared.V_transposed[s] + d_head * Bc)[place] = 0x38383838;
    }
    ptx::fence_proxy_async();  // for wgmma
    __syncthreads();           // nobody waits at a barrier that is not there yet
    // ---- load ----
    if (warpgroup >= consumers) {
        ptx::setmaxnreg_dec<other_registers>();
        if (threadIdx.x == 128 * consumers) {
            uint32_t j = 0;  // tiles of K and of V so far, of all query tiles: the queues know of no others
            for (int q = 0;; ++q) {
                const int Q_now = q % q_stages;
                ptx::mbarrier_wait(&shared.Q_empty[Q_now], q / q_stages % 2 ^ 1);
                const QueryTile work = query_tile(params, query_tiles, q, Br, Bc);
                const auto [batch, head, kv_head, first_row, diagonal, tiles] = shared.query_tiles[Q_now] = work;
                if (tiles == 0) {
                    ptx::mbarrier_arrive(&shared.Q_full[Q_now]);  // no Q comes
                    break;
                }
                load_tile(shared.Q[Q_now], Q_bytes, maps.Q, &shared.Q_full[Q_now], first_row, head, batch);
                for (int tile = tiles - 1; tile >= 0; --tile, ++j) {  // rows behind the last one arrive as zeros
                    // A buffer's use number j / kv_stages; the one before it must be over, if there is one.
                    const uint32_t s = j % kv_stages, before = j / kv_stages % 2 ^ 1, row = tile * Bc;
                    ptx::mbarrier_wait(&shared.K_empty[s], before);
                    load_tile(shared.K[s], tile_bytes, maps.K, &shared.K_full[s], row, kv_head, batch);
                    ptx::mbarrier_wait(&shared.V_empty[s], before);
                    load_tile(shared.V[s], tile_bytes, maps.V, &shared.V_full[s], row, kv_head, batch);
                }
            }
        }
        const int transposer = warp - (threads / 32 - transposers);
        if (transposer >= 0) {
            uint32_t j = 0;
            for (int q = 0;; ++q) {
                ptx::mbarrier_wait(&shared.Q_full[q % q_stages], q / q_stages % 2);
                const int tiles = shared.query_tiles[q % q_stages].tiles;
                __syncwarp();  // all have read it before one of them gives it back
                if (tiles == 0) break;
                if (lane == 0) ptx::mbarrier_arrive(&shared.Q_empty[q % q_stages]);
                for (const uint32_t last = j + tiles; j < last; ++j) {
                    const uint32_t s = j % kv_stages, now = j / kv_stages % 2;
                    ptx::mbarrier_wait(&shared.V_full[s], now);
                    ptx::mbarrier_wait(&shared.transposed_empty[s], now ^ 1);
                    transpose_tile<d_head>(shared.V[s], shared.V_transposed[s], transposer, transposers, lane);
                    ptx::fence_proxy_async();  // each lane's own bytes, for wgmma
                    __syncwarp();
                    if (lane == 0) ptx::mbarrier_arrive(&shared.V_empty[s]);
                    if (lane == 0) ptx::mbarrier_arrive(&shared.transposed_full[s]);
                }
            }
        }
        return;
    }
    ptx::setmaxnreg_inc<Shape<d_head>::consumer_registers>();
    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    // How wgmma finds the tiles: the warpgroup's 64 rows of Q and K's along d_head, and V's columns along its rows.
    const e4m3 *Q_rows = shared.Q[0] + warpgroup * 64 * d_head;
    const uint64_t Q_matrix = ptx::matrix_descriptor(Q_rows, 0, 8 * row_bytes, row_bytes);
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes, row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V_transposed, 0, 8 * Bc, Bc);
    if (warpgroup == consumers - 1) ptx::barrier_arrive(1, 256);  // the first turn is warpgroup 0's
    Place<kv_stages> K_at, V_at;  // K's first: a tile's S comes before the PV of the one before
    QueryTile now;                // what S, and what follows of it, is of; O may still be the one before's
    const auto &[batch, head, kv_head, first_row, diagonal, tiles] = now;
    int warp_row, tile;    // the warp's first row; which tile of K and V S is of
    float scale_log2;      // exp(scale x) = 2^(scale log2(e) x), and each head's Q and K have a factor
    float O[columns / 2];  // [64, columns] per warpgroup
    // Of both rows: what P = 2^(scale log2(e) S - reference) refers to, the scaled maximum less the headroom; what O
    // shrinks by before PV of the tile is added, and of the next.
    float reference[2], rescale[2], next_rescale[2];

    // ---- S = QKᵀ ----
    const auto take_query_tile = [&](int q) {
        const int Q_now = q % q_stages;
        ptx::mbarrier_wait(&shared.Q_full[Q_now], q / q_stages % 2);
        now = handed_over(shared.query_tiles[Q_now]);
        if (tiles == 0) return;
        warp_row = first_row + warp * 16, tile = tiles - 1;
        scale_log2 = params.scale * 1.44269504f * params.Q_scales[batch * params.Hq + head] *
                     params.K_scales[batch * params.Hkv + kv_head];
    };
    float S[Bc / 2];  // [64, Bc] per warpgroup
    const auto issue_S = [&](int q) {
        ptx::mbarrier_wait(&shared.K_full[K_at.buffer], K_at.parity);  // all bytes of this tile are there
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 32; ++k)  // 32 columns are 32 bytes of a row
            ptx::wgmma_ss<e4m3, Bc>(S, Q_matrix + further(q % q_stages * Q_bytes + 32 * k),
                                    K_matrix + further(K_at.buffer * tile_bytes + 32 * k), k > 0);
        ptx::wgmma_commit();
    };

    // ---- PV ----
    float PV[columns / 2];   // of one tile alone: what it is added to is exact to 13 bits, so O stays outside
    uint32_t P[Bc / 32][4];  // [64, Bc] per warpgroup
    const auto issue_PV = [&] {
        ptx::wgmma_fence(PV, P);
#pragma unroll
        for (int k = 0; k < Bc / 32; ++k)  // 32 rows of V: 32 bytes of each column's
            ptx::wgmma_rs<e4m3, columns>(PV, P[k], V_matrix + further(V_at.buffer * columns * Bc + 32 * k), k > 0);
        ptx::wgmma_commit();
    };

    // Turns at the tensor cores: barrier 1 + w, all of w wait, all of the one before have passed it on, products done.
    const auto take_turn = [&] { ptx::barrier_sync(1 + warpgroup, 256); };
    const auto pass_turn = [&] { ptx::barrier_arrive(1 + (warpgroup + 1) % consumers, 256); };
    // The next tile's S, of this query tile or of the next one, and with it this tile's PV.
    const auto next_S = [&](int q) {
        take_turn(), issue_S(q), issue_PV();
        ptx::wgmma_wait<1>(S);  // the older of the two; PV goes on under the mask and the maximum
        K_at.leave(shared.K_empty, lane);
    };

    // ---- O = rescale O + PV ----
    const auto end_of_PV = [&] {
        ptx::wgmma_wait<0>(PV, P);  // they may be touched again
        if (!long_turns) pass_turn();
        V_at.leave(shared.transposed_empty, lane);
#pragma unroll
        for (int x = 0; x < columns / 2; ++x) O[x] = fmaf(O[x], rescale[x / 2 % 2], PV[x]);
        if (long_turns) pass_turn();
    };

    // ---- mask ----
    const auto mask = [&](int tile) {
        const int first_column = tile * Bc;
        if (first_column + Bc > min(params.Nkv, warp_row + 1 + diagonal)) {  // the warp's first row sees fewest
#pragma unroll
            for (int x = 0; x < Bc / 2; ++x) {
                const int i = warp_row + x / 2 % 2 * 8 + lane / 4;
                if (first_column + x / 4 * 8 + lane % 4 * 2 + x % 2 >= min(params.Nkv, i + 1 + diagonal))
                    S[x] = -INFINITY;
            }
        }
    };

    // ---- online softmax ----
    // Of integers one instruction finds the largest of three, and the bits of floats from 0 up are in the floats'
    // order. Below 0 they are not: a warp with a lane that has found a negative one looks again.
    const auto take_maximum = [&] {
        int most[2] = {__float_as_int(S[0]), __float_as_int(S[2])};
#pragma unroll
        for (int x = 0; x < Bc / 2; x += 2)
            most[x / 2 % 2] = max(max(most[x / 2 % 2], __float_as_int(S[x])), __float_as_int(S[x + 1]));
        float new_max[2] = {__int_as_float(most[0]), __int_as_float(most[1])};
        if (__any_sync(0xffffffff, (most[0] | most[1]) < 0)) {
            new_max[0] = S[0], new_max[1] = S[2];
#pragma unroll
            for (int x = 0; x < Bc / 2; ++x) new_max[x / 2 % 2] = fmaxf(new_max[x / 2 % 2], S[x]);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float old = reference[half];
            reference[half] = fmaxf(old, row_reduce_max(new_max[half]) * scale_log2 - headroom);
            next_rescale[half] = ptx::exp2(old - reference[half]);
        }
    };
    const auto first_maximum = [&] { reference[0] = reference[1] = lowest, take_maximum(); };
    // 16 columns of S are four numbers of each row in a lane, the four bytes of a register of P: columns 2 c, 2 c + 1,
    // 2 c + 8 and 2 c + 9, c = lane % 4, in the places 4 c to 4 c + 3.
    const auto exponentials = [&] {
        // Waited for here, V transposed holds up nobody in a turn. And ptxas moves instructions across a barrier, but
        // not across the loop of a wait: the exponentials stay on this side of pass_turn.
        ptx::mbarrier_wait(&shared.transposed_full[V_at.buffer], V_at.parity);
#pragma unroll
        for (int n = 0; n < Bc / 16; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float p[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float s = S[8 * n + 4 * (e / 2) + 2 * half + e % 2];
                    p[e] = ptx::exp2(fmaf(s, scale_log2, -reference[half]));  // one multiply-add, one ex2
                }
                P[n / 2][2 * (n % 2) + half] = ptx::pack_e4m3(p[0], p[1], p[2], p[3]);
            }
        rescale[0] = next_rescale[0], rescale[1] = next_rescale[1];
    };

    // The end of the PV before, and this tile's maximum: behind a short turn, in a long one under PV.
    const auto finish_PV = [&](const auto &maximum) {
        if (long_turns)
            maximum(), end_of_PV();
        else
            end_of_PV(), maximum();
    };

    // ---- store ----
    const auto store = [&](const QueryTile &done, const float (&reference)[2]) {
        using T = __nv_bfloat16;
        T *O_global =
            static_cast<T *>(params.O.data) + done.batch * params.O.stride_batch + done.head * params.O.stride_head;
        const float V_scale = params.V_scales[done.batch * params.Hkv + done.kv_head];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = O[d_head / 2 + 2 * half];               // P times a column of ones
            const float inverse = sum > 0.0f ? V_scale / sum : 0.0f;  // rows that see no key are 0
            const int i = done.first_row + warp * 16 + 8 * half + lane / 4;
            if (params.log_sum_exp && lane % 4 == 0 && i < params.Nq)
                params.log_sum_exp[(int64_t{done.batch} * params.Hq + done.head) * params.Nq + i] =
                    sum > 0.0f ? reference[half] * 0.693147181f + logf(sum) : -INFINITY;
#pragma unroll
            for (int n = 0; n < d_head / 8; n += 4) {  // 32 columns: 16 bytes for each of the four lanes
                uint32_t pieces[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const float *pair = &O[4 * (n + k) + 2 * half];
                    pieces[k] = pack<T>(pair[0] * inverse, pair[1] * inverse);
                }
                transpose(pieces, lane);
                if (i < params.Nq)
                    *reinterpret_cast<uint4 *>(O_global + i * params.O.stride_row + 8 * n + lane % 4 * 8) =
                        make_uint4(pieces[0], pieces[1], pieces[2], pieces[3]);
            }
        }
        __syncwarp();  // behind branches that differ the compiler would not take the lanes for together any more
    };

    take_query_tile(0), take_turn(), issue_S(0);  // each block has a query tile
    ptx::wgmma_wait<0>(S), pass_turn(), K_at.leave(shared.K_empty, lane);
    mask(tile), first_maximum(), exponentials();
    for (int q = 0; tiles > 0; ++q) {
#pragma unroll
        for (int x = 0; x < columns / 2; ++x) O[x] = 0.0f;
        while (tile-- > 0) next_S(q), mask(tile), finish_PV(take_maximum), exponentials();
        if (lane == 0) ptx::mbarrier_arrive(&shared.Q_empty[q % q_stages]);
        // The next query tile begins, and as its P is there, O's registers are emptied.
        const QueryTile done = now;
        const float done_reference[2] = {reference[0], reference[1]};
        take_query_tile(q + 1);
        if (tiles > 0)
            next_S(q + 1), mask(tile), finish_PV(first_maximum), exponentials();
        else
            take_turn(), issue_PV(), end_of_PV();
        store(done, done_reference);
    }
    if (warpgroup == 0) ptx::barrier_sync(1, 256);  // the last that was passed: no arrival is left over
}

// ---- launch ----

constexpr flash::Limits limits = {.stage = 29,
                                  .title = "FP8",
                                  .min_compute = 90,
                                  .Br = Shape<128>::Br,  // the smaller
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true,  // sm_90a
                                  .e4m3 = true};

static flash::Launch plan(const FlashParams &params) {
    return flash::choose_d_head(params, [&]<int d_head>() {
        constexpr int Br = Shape<d_head>::Br;
        return flash::Launch{.kernel = flash_kernel<d_head>,
                             .grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br)),
                             .threads = threads,
                             .shared_bytes = sizeof(Shared<d_head>),
                             .Q_box_rows = Br,
                             .KV_box_rows = Bc};
    });
}

extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    const FlashStatus status = flash::check(params, limits);
    return status == FLASH_OK ? flash::launch(plan(*params), *params, stream) : status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    FlashStatus status = flash::check_sizes(params, limits);
    if (status == FLASH_OK) status = flash::describe(limits, plan(*params), 0, description);
    if (status == FLASH_OK && params->d_head == 64) description->Br = Shape<64>::Br;
    return status;
}
