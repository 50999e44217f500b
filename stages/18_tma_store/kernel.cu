// Stage 30, from stage 28: a shorter change of query tile. TMA stores O, which the warps leave in shared memory, and
// what O is divided by is computed while products are under way.
//
// A query tile is Br rows of Q, 64 for each consumer warpgroup, 16 for each warp. For it the block walks over K and V
// in tiles of Bc = 128 rows; the producer is ahead by as many as there are buffers. Nobody stops at a query tile's end:
// the next one's first S is under way with this one's last PV.

#include "configured.h"
#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

struct Configuration {      // stage 28's
    int Br, Bc, kv_stages;  // rows of Q (and of S, P, O) a block; rows of K and V a tile; buffers for K's and for V's
    int parts;            // of P: 1, PV goes on under the next tile's mask (21); 2, under the other part's softmax (22)
    bool turns;           // consumers take turns at the tensor cores (18)
    bool Q_in_registers;  // each warp's rows, for all of a query tile; else each product reads them in shared memory
    int producer_registers, consumer_registers, blocks;            // a thread; blocks that a multiprocessor holds
    constexpr int threads() const { return 128 * (Br / 64 + 1); }  // a consumer for each 64 rows, and the producer
};
constexpr int q_stages = 2;          // buffers for tiles of Q
constexpr float lowest = -0x1p127f;  // below all scores; finite, so that a score of -infinity less it is no NaN
// With a maximum just taken, P is at most 2^-margin. fp16 has bits to lose below 2^-14.
template <typename T>
constexpr float margin = std::is_same_v<T, __half> ? 3 : 32;
constexpr int panel = 64;  // elements in 128 bytes: the columns that TMA swizzles together

template <int first, int last>
struct Columns {
    static constexpr int begin = first, end = last;  // of S and P
};

// One piece of the work: rows of Q from first_row on, of one head. They see `tiles` tiles of K and V, none
// where there is no more work; row i sees columns 0 to i + diagonal.
struct QueryTile {
    int batch, head, kv_head, first_row, diagonal, tiles;
};

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <typename T, int d_head, Configuration config>
struct Shared {
    static constexpr int Br = config.Br, Bc = config.Bc, kv_stages = config.kv_stages;
    T Q[q_stages][Br * d_head];  // [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];
    T O[Br / 16][16 * d_head];                     // of each warp [d_head / panel][16][panel], on its way out
    uint64_t Q_full[q_stages], Q_empty[q_stages];  // mbarriers
    uint64_t K_full[kv_stages], K_empty[kv_stages], V_full[kv_stages], V_empty[kv_stages];
    QueryTile query_tiles[q_stages];  // which ones lie in Q
};

// The query tile that this block works on when it has had q. Which, and why, stage 26 says; with 192 rows the heads of
// the last three rounds of pairs go by length.
__device__ QueryTile query_tile(const FlashParams &params, uint32_t query_tiles, uint32_t q, int Br, int Bc) {
    const uint32_t row_tiles = uint32_t(params.Nq + Br - 1) / Br, heads = query_tiles / row_tiles, blocks = gridDim.x;
    const uint32_t rounds = query_tiles / (2 * blocks), last = row_tiles < 8 ? 0 : Br > 128 ? 3 : 1;  // rounds of pairs
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

// Where a consumer is in the queue of K or of V: at which buffer, and at which parity its barriers are.
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

// The largest (the sum) of x over the four lanes that hold one row of S.
__device__ float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// A query tile as the producer has written it down. What the loop uses of it the compiler knows to be uniform.
__device__ QueryTile handed_over(const QueryTile &written) {
    QueryTile tile = written;
    for (int *field : {&tile.first_row, &tile.diagonal, &tile.tiles}) *field = __shfl_sync(0xffffffff, *field, 0);
    __syncwarp();  // all have read it before one of them gives it back
    return tile;
}

// grid: as many blocks as the multiprocessors hold, or as query tiles if they are fewer
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(config.threads(), config.blocks)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<Shared<T, d_head, config> *>(shared_bytes);
    constexpr int Br = config.Br, Bc = config.Bc, kv_stages = config.kv_stages, consumers = Br / 64;
    const int query_tiles = params.Hq * params.B * ((params.Nq + Br - 1) / Br);
    constexpr int row_bytes = panel * sizeof(T), tile_bytes = Bc * d_head * sizeof(T);
    constexpr int Q_bytes = sizeof(Shared<T, d_head, config>::Q[0]);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), warpgroup = warp / 4;  // the compiler knows: uniform
    if (threadIdx.x == 0) {
        for (int s = 0; s < q_stages; ++s) {
            ptx::mbarrier_init(&shared.Q_full[s], 1);
            ptx::mbarrier_init(&shared.Q_empty[s], 4 * consumers);
        }
        for (int s = 0; s < kv_stages; ++s) {
            ptx::mbarrier_init(&shared.K_full[s], 1);  // the producer arrives; the bytes are counted besides
            ptx::mbarrier_init(&shared.V_full[s], 1);
            ptx::mbarrier_init(&shared.K_empty[s], 4 * consumers);  // each warp arrives when it has read the buffer
            ptx::mbarrier_init(&shared.V_empty[s], 4 * consumers);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // nobody waits at a barrier that is not there yet
    // ---- load ----
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<config.producer_registers>();
        if (threadIdx.x == 128 * consumers) {
            uint32_t j = 0;  // tiles of K and of V so far, of all query tiles: the queues know of no others
            int V_row = 0, V_head = 0, V_batch = 0;  // the tile of V that is asked for behind the next one of K
            const auto load_V = [&](uint32_t number) {
                const uint32_t s = number % kv_stages;
                ptx::mbarrier_wait(&shared.V_empty[s], number / kv_stages % 2 ^ 1);
                load_tile(shared.V[s], tile_bytes, maps.V, &shared.V_full[s], V_row, V_head, V_batch);
            };
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
                    if (j > 0) load_V(j - 1);
                    V_row = row, V_head = kv_head, V_batch = batch;
                }
            }
            if (j > 0) load_V(j - 1);
        }
        return;
    }
    ptx::setmaxnreg_inc<config.consumer_registers>();
    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    const int lane = threadIdx.x % 32;
    const float scale_log2 = params.scale * 1.44269504f;                   // exp(scale x) = 2^(scale log2(e) x)
    constexpr float most = std::is_same_v<T, __half> ? 0x1p15f : 0x1p64f;  // a lane's sum of P: there its bet is lost
    // How wgmma finds the tiles: the warpgroup's 64 rows of Q and the rows of K, along d_head, and V's columns, along
    // its rows. 8 rows of a panel are 1,024 bytes.
    const uint64_t Q_matrix = ptx::matrix_descriptor(shared.Q[0] + warpgroup * 64 * panel, 0, 8 * row_bytes);
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes);
    if (config.turns && warpgroup == consumers - 1) ptx::barrier_arrive(1, 256);  // the first turn is warpgroup 0's
    Place<kv_stages> K_at, V_at;  // K's first: a tile's S comes before the PV of the one before
    QueryTile now;                // what S, and what follows of it, is of; O may still be the one before's
    const auto &[batch, head, kv_head, first_row, diagonal, tiles] = now;
    int warp_row, tile;   // the warp's first row; which tile of K and V S is of
    float O[d_head / 2];  // [64, d_head] per warpgroup
    // For each of the two rows: what P = 2^(scale log2(e) S - reference) refers to; this lane's part of P's sum.
    float reference[2] = {lowest, lowest}, row_sum[2] = {};

    // ---- S = QKᵀ ----
    uint32_t Q[config.Q_in_registers ? d_head / 16 : 1][4];  // [64, d_head] per warpgroup
    const auto take_query_tile = [&](int q) {
        const int Q_now = q % q_stages;
        ptx::mbarrier_wait(&shared.Q_full[Q_now], q / q_stages % 2);
        now = handed_over(shared.query_tiles[Q_now]);
        warp_row = first_row + warp * 16, tile = tiles - 1;
        if constexpr (config.Q_in_registers) {
            if (tiles == 0) return;
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {  // TMA has put 16 bytes number i of row r at number i ^ r % 8
                const int row = warp * 16 + lane % 16, piece = (k % 4 * 2 + lane / 16) ^ row % 8;
                ptx::ldmatrix_x4(Q[k], ptx::shared_address(shared.Q[Q_now] + (k / 4 * Br + row) * panel + piece * 8));
            }
            __syncwarp();  // all lanes have read their rows
            if (lane == 0) ptx::mbarrier_arrive(&shared.Q_empty[Q_now]);
        }
    };
    float S[Bc / 2];  // [64, Bc] per warpgroup
    const auto issue_S = [&](int q) {
        ptx::mbarrier_wait(&shared.K_full[K_at.buffer], K_at.parity);  // all bytes of this tile are there
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {  // 16 columns are 32 bytes of a row; a panel has four times 16
            const uint64_t step = further(k % 4 * 32), K_panel = further(k / 4 * Bc * row_bytes);
            const uint64_t K_rows = K_matrix + further(K_at.buffer * tile_bytes) + K_panel + step;
            const uint64_t Q_rows = Q_matrix + further(q % q_stages * Q_bytes + k / 4 * Br * row_bytes) + step;
            if constexpr (config.Q_in_registers)
                ptx::wgmma_rs_k_major<T, Bc>(S, Q[k], K_rows, k > 0);
            else
                ptx::wgmma_ss<T, Bc>(S, Q_rows, K_rows, k > 0);
        }
        ptx::wgmma_commit();
    };

    // ---- O += PV ----
    uint32_t P[Bc / 16][4];  // [64, Bc] per warpgroup
    using First = Columns<0, Bc / config.parts>;
    using Second = Columns<Bc / config.parts, Bc>;  // none with P whole
    const auto issue_PV = [&](auto part) {
        if (part.begin == 0) ptx::mbarrier_wait(&shared.V_full[V_at.buffer], V_at.parity);
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = part.begin / 16; k < part.end / 16; ++k) {
            const uint64_t V_rows = further(V_at.buffer * tile_bytes) + further(k * 16 * row_bytes);  // of 16 rows
            ptx::wgmma_rs<T, d_head>(O, P[k], V_matrix + V_rows, true);
        }
        ptx::wgmma_commit();
    };

    const auto take_turn = [&] {  // barrier 1 + w: all of w wait, all of the one before have passed it on
        if (config.turns) ptx::barrier_sync(1 + warpgroup, 256);
    };
    const auto pass_turn = [&](bool has_it = true) {  // with S at hand: before, others' products would hold it up
        if (config.turns) ptx::barrier_arrive_if(has_it, 1 + (warpgroup + 1) % consumers, 256);
    };
    // The next tile's S, of this query tile or of the next one; with P whole, and with this tile's PV. What is to be
    // done while they are under way must touch none of their registers.
    const auto next_S = [&](int q, auto meanwhile) {
        if constexpr (config.parts == 2) {
            issue_S(q), meanwhile();
            ptx::wgmma_wait<0>(S, O, P);
        } else {
            take_turn(), issue_S(q), issue_PV(First()), meanwhile();
            ptx::wgmma_wait<1>(S);  // the older of the two; PV goes on under the mask
        }
        K_at.leave(shared.K_empty, lane);
    };
    const auto end_of_PV = [&](bool has_turn = true) {
        // Two consumers at d_head 64 wait more for the softmax than for products: there a turn lasts until PV's end.
        constexpr bool long_turns = consumers == 2 && d_head == 64;
        if (!long_turns) pass_turn(has_turn);
        ptx::wgmma_wait<0>(O, P);  // they may be touched again
        if (long_turns) pass_turn(has_turn);
        V_at.leave(shared.V_empty, lane);
    };

    // ---- mask ----
    const auto mask = [&](int tile) {
        const int first_column = tile * Bc;
        if (first_column + Bc > min(params.Nkv, warp_row + 1 + diagonal)) {  // the warp's first row sees fewest
#pragma unroll
            for (int x = 0; x < Bc / 2; ++x) {
                const int i = warp_row + x / 2 % 2 * 8 + lane / 4, j = first_column + x / 4 * 8 + lane % 4 * 2 + x % 2;
                if (j >= min(params.Nkv, i + 1 + diagonal)) S[x] = -INFINITY;
            }
        }
    };

    // ---- online softmax ----
    // A part of P and its sums: 16 columns of S, rounded to 16 bits, are an operand A as they lie, and never
    // leave their lanes. S stays. Returns whether this lane's bet is lost.
    float sum[2] = {INFINITY, INFINITY};  // of this lane's elements alone; nothing to bet on yet is as good as lost
    float rescale[2];                     // what older sums and outputs shrink by when the maximum grows
    bool careful = false;                 // this warp looks at each tile's maximum before it bets
    const auto exponentials = [&](auto part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            sum[half] = 0.0f;
#pragma unroll
            for (int x = part.begin / 2 + 2 * half; x < part.end / 2; x += 4) {
                const float p0 = ptx::exp2(fmaf(S[x], scale_log2, -reference[half]));  // one multiply-add, one ex2
                const float p1 = ptx::exp2(fmaf(S[x + 1], scale_log2, -reference[half]));
                sum[half] += p0 + p1;
                P[x / 8][x % 8 / 2] = pack<T>(p0, p1);
            }
        }
        return !(fmaxf(sum[0], sum[1]) < most);
    };
    // For the rows that have lost, whoever else has: no row's numbers depend on its neighbours'.
    const auto take_maximum = [&](auto part, float slack) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float new_max = -INFINITY;
#pragma unroll
            for (int x = part.begin / 2 + 2 * half; x < part.end / 2; x += 4)
                new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
            const float old = reference[half], wanted = row_reduce_max(new_max) * scale_log2 + margin<T>;
            if (__ballot_sync(0xffffffff, !(sum[half] < most)) >> lane / 4 * 4 & 15)  // by one of its four lanes
                if (wanted > old + slack) reference[half] = wanted;
            rescale[half] = ptx::exp2(old - reference[half]);
            row_sum[half] *= rescale[half];
        }
    };
    const auto rescale_O = [&] {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] *= rescale[x / 2 % 2];
    };
    const auto softmax = [&](auto part) {
        if (__any_sync(0xffffffff, exponentials(part))) {
            // A bet lost so early is not the last one. (Rows that had seen no key yet had none.)
            if (tiles - tile <= 8) careful |= __all_sync(0xffffffff, fminf(reference[0], reference[1]) > lowest);
            ptx::wgmma_wait<0>(O, P);  // of the part before: O may be touched
            take_maximum(part, 0), rescale_O(), exponentials(part);
        }
        row_sum[0] += sum[0], row_sum[1] += sum[1];
    };
    // Behind a maximum no bet is lost, and O, still the query tile's before, is left alone.
    const auto first_softmax = [&] {
        reference[0] = reference[1] = lowest, sum[0] = sum[1] = INFINITY, careful = false;
        take_maximum(First(), 0), exponentials(First());
        row_sum[0] = sum[0], row_sum[1] = sum[1];
    };

    // ---- store ----
    float total[2], inverse[2];  // of P's sums, over all four lanes
    const auto end_of_sums = [&] {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            total[half] = row_reduce_sum(row_sum[half]);
            inverse[half] = total[half] > 0.0f ? ptx::reciprocal(total[half]) : 0.0f;  // rows that see no key are 0
        }
    };
    const auto store = [&](const QueryTile &done, const float (&reference)[2]) {
        T *const own = shared.O[warp];
        if (lane == 0) ptx::tma_store_wait_read<0>();  // the query tile before has left it
        __syncwarp();
        const uint32_t row = ptx::shared_address(own + lane % 16 * panel);
#pragma unroll
        for (int n = 0; n < d_head / 8; n += 2) {  // 16 columns; lanes 0 to 15 give the addresses of the first 8
            uint32_t pieces[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int x = 4 * (n + k / 2) + k % 2 * 2;
                pieces[k] = pack<T>(O[x] * inverse[k % 2], O[x + 1] * inverse[k % 2]);
            }
            const int place = (n % 8 + lane / 16) ^ lane % 8;  // TMA wants 16 bytes number i of row r at i ^ r % 8
            ptx::stmatrix_x4(row + (n / 8 * 16 * panel + place * 8) * sizeof(T), pieces);
        }
        ptx::fence_proxy_async();  // TMA sees what this lane has written
        __syncwarp();              // and what all have
        if (lane == 0)             // rows behind the last one are not written
            ptx::tma_store(&maps.O, own, 0, done.first_row + warp * 16, 0, done.head, done.batch),
                ptx::tma_store_commit();
        if (params.log_sum_exp) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int i = done.first_row + warp * 16 + 8 * half + lane / 4;
                if (lane % 4 == 0 && i < params.Nq)
                    params.log_sum_exp[(int64_t{done.batch} * params.Hq + done.head) * params.Nq + i] =
                        total[half] > 0.0f ? reference[half] * 0.693147181f + logf(total[half]) : -INFINITY;
            }
        }
        __syncwarp();  // behind branches that differ the compiler would not take the lanes for together any more
    };

    take_query_tile(0), take_turn(), issue_S(0);  // each block has a query tile
    ptx::wgmma_wait<0>(S), K_at.leave(shared.K_empty, lane);
    mask(tile), pass_turn(), first_softmax();
    for (int q = 0; tiles > 0; ++q) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;
        for (;;) {  // the first part of this tile's P is there
            if constexpr (config.parts == 2) issue_PV(First()), softmax(Second()), issue_PV(Second());
            if (tile-- == 0) break;
            next_S(q, [] {}), mask(tile);
            if (careful) {
                pass_turn();  // others' products do not wait for a maximum
                sum[0] = sum[1] = INFINITY;
                take_maximum(Columns<0, Bc>(), 2 * margin<T>);  // P is at most 2^margin, far from a lost bet
                ptx::wgmma_wait<0>(O, P);
                if (__any_sync(0xffffffff, fminf(rescale[0], rescale[1]) < 1.0f)) rescale_O();
            }
            end_of_PV(!careful), softmax(First());
        }
        if (!config.Q_in_registers && lane == 0) ptx::mbarrier_arrive(&shared.Q_empty[q % q_stages]);

        // The next query tile begins, and as its P is there, O's registers are emptied.
        const QueryTile done = now;
        const float done_reference[2] = {reference[0], reference[1]};
        take_query_tile(q + 1);
        if (tiles > 0) {
            next_S(q + 1, end_of_sums), mask(tile), end_of_PV(), first_softmax();
        } else {
            if constexpr (config.parts == 1) take_turn(), issue_PV(First()), end_of_PV();
            ptx::wgmma_wait<0>(O), end_of_sums();
        }
        store(done, done_reference);
    }
    if (lane == 0) ptx::tma_store_wait_read<0>();  // this block's shared memory stays until TMA has read it
    if (config.turns && warpgroup == 0) ptx::barrier_sync(1, 256);  // the last that was passed: no arrival is left over
}

// ---- launch ----

constexpr flash::Limits limits = {.stage = 30,
                                  .title = "TMA store",
                                  .min_compute = 90,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

template <typename T, int d_head, Configuration config>
static flash::Instance instance(const char *short_form) {
    flash::Kernel kernel = nullptr;
    if constexpr (flash::built<T, d_head>) kernel = flash_kernel<T, d_head, config>;
    return flash::instance<T>(short_form, d_head, kernel, config.Br, config.Bc, config.threads(), config.blocks,
                              sizeof(Shared<T, d_head, config>));
}

#include "instances.h"  // `table`: the instances that are built, and which of them runs what
extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    return flash::forward(params, table, limits, stream);
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    return flash::describe(params, table, limits, description);
}
