// Stage 25: no gap between query tiles. The next one's first S is asked for behind this one's last PV, and its softmax
// comes before O is stored: the tiles of all query tiles are one stream.
//
// A query tile is Br = 128 rows of Q, of which each of a block's two consumer warpgroups has 64 and each warp 16. For
// it the block walks over K and V in tiles of Bc = 128 rows. The producer is ahead of them by as many tiles as there
// are buffers, and does not stop at a query tile's end.

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

constexpr int Br = 128;             // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 128;             // rows of K and V in a tile
constexpr int consumers = Br / 64;  // warpgroups that compute; one more produces
constexpr int threads = 128 * (consumers + 1);
constexpr int producer_registers = 24, consumer_registers = 240;  // a thread; together what 3 x 168 were at the launch
constexpr int q_stages = 2, kv_stages = 2;                        // buffers for tiles of Q; of K and of V
constexpr float lowest = -0x1p127f;  // below all scores; finite, so that a score of -infinity less it is no NaN
// With a maximum just taken, P is at most 2^-margin. fp16 has bits to lose below 2^-14.
template <typename T>
constexpr float margin = std::is_same_v<T, __half> ? 3 : 32;
constexpr int panel = 64;  // elements in 128 bytes: the columns that TMA swizzles together

// P in two parts.
template <int number>
struct Part {
    static constexpr int begin = Bc / 2 * number, end = begin + Bc / 2;  // columns
};

// One piece of the work: rows of Q from first_row on, of one head. They see `tiles` tiles of K and V, none
// where there is no more work; row i sees columns 0 to i + diagonal.
struct QueryTile {
    int batch, head, kv_head, first_row, diagonal, tiles;
};

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <typename T, int d_head>
struct Shared {
    T Q[q_stages][Br * d_head];  // [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];
    uint64_t Q_full[q_stages], Q_empty[q_stages];  // mbarriers
    uint64_t K_full[kv_stages], K_empty[kv_stages], V_full[kv_stages], V_empty[kv_stages];
    QueryTile query_tiles[q_stages];  // which ones lie in Q
};

// Query tile number t. One head's follow each other, so that blocks side by side read the same K and V. If causal, the
// last rows come first, then the first, the last but one, ...: two neighbours see as many keys as any other two.
__device__ QueryTile query_tile(const FlashParams &params, int t) {
    const int row_tiles = (params.Nq + Br - 1) / Br, row_tile = t % row_tiles, batch = t / row_tiles / params.Hq;
    const int head = t / row_tiles % params.Hq, kv_head = head / (params.Hq / params.Hkv);
    const int in_turn = row_tile % 2 ? row_tile / 2 : row_tiles - 1 - row_tile / 2;
    const int first_row = (params.causal ? in_turn : row_tile) * Br;
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

// Announces a tile of so many bytes at `full` and asks for it, the rows from `row` on of one head: the calling thread
// goes on at once.
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

// Which query tile this block works on when it has had q: one of each round; if causal two neighbours, where there are
// enough for all blocks.
__device__ int query_tile_number(bool causal, int query_tiles, int q) {
    const int neighbours = causal && query_tiles >= 2 * gridDim.x ? 2 : 1;
    return (q / neighbours * gridDim.x + blockIdx.x) * neighbours + q % neighbours;
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

// grid: as many blocks as multiprocessors, or as query tiles if they are fewer
template <typename T, int d_head>
__global__ void __launch_bounds__(threads, 1)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<Shared<T, d_head> *>(shared_bytes);

    const int query_tiles = params.Hq * params.B * ((params.Nq + Br - 1) / Br);
    constexpr int row_bytes = panel * sizeof(T), tile_bytes = Bc * d_head * sizeof(T);
    constexpr int Q_bytes = sizeof(Shared<T, d_head>::Q[0]);
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
        ptx::setmaxnreg_dec<producer_registers>();
        if (threadIdx.x == 128 * consumers) {
            uint32_t j = 0;  // tiles of K and of V so far, of all query tiles: the queues know of no others
            int V_row = 0, V_head = 0, V_batch = 0;  // the tile of V that is asked for behind the next one of K
            const auto load_V = [&](uint32_t number) {
                const uint32_t s = number % kv_stages;
                ptx::mbarrier_wait(&shared.V_empty[s], number / kv_stages % 2 ^ 1);
                load_tile(shared.V[s], tile_bytes, maps.V, &shared.V_full[s], V_row, V_head, V_batch);
            };
            for (int q = 0;; ++q) {
                const int t = query_tile_number(params.causal, query_tiles, q), Q_now = q % q_stages;
                ptx::mbarrier_wait(&shared.Q_empty[Q_now], q / q_stages % 2 ^ 1);
                const QueryTile work = t < query_tiles ? query_tile(params, t) : QueryTile{};
                const auto [batch, head, kv_head, first_row, diagonal, tiles] = shared.query_tiles[Q_now] = work;
                if (tiles == 0) {
                    ptx::mbarrier_arrive(&shared.Q_full[Q_now]);  // no Q comes
                    break;
                }
                load_tile(shared.Q[Q_now], Q_bytes, maps.Q, &shared.Q_full[Q_now], first_row, head, batch);
                for (int tile = tiles - 1; tile >= 0; --tile, ++j) {  // rows behind the last one arrive as zeros
                    // A buffer's use number j / kv_stages; the one before it must be over. Before the first there is
                    // none, and a fresh barrier lets parity 1 pass.
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
    ptx::setmaxnreg_inc<consumer_registers>();
    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    const int lane = threadIdx.x % 32;
    const float scale_log2 = params.scale * 1.44269504f;                   // exp(scale x) = 2^(scale log2(e) x)
    constexpr float most = std::is_same_v<T, __half> ? 0x1p15f : 0x1p64f;  // a lane's sum of P: there its bet is lost
    // How wgmma finds the tiles: the rows of K, along d_head, and V's columns, along its rows. 8 rows of a panel are
    // 1,024 bytes.
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes);
    Place<kv_stages> K_at, V_at;  // K's first: a tile's S comes before the PV of the one before
    QueryTile now;                // what S, and what follows of it, is of; O may still be the one before's
    const auto &[batch, head, kv_head, first_row, diagonal, tiles] = now;
    int warp_row, tile;   // the warp's first row; which tile of K and V S is of
    float O[d_head / 2];  // [64, d_head] per warpgroup
    // For each of the two rows: what P = 2^(scale log2(e) S - reference) refers to; this lane's part of P's sum.
    float reference[2] = {lowest, lowest}, row_sum[2] = {};

    // ---- S = QKᵀ ----
    uint32_t Q[d_head / 16][4];  // [64, d_head] per warpgroup
    const auto take_query_tile = [&](int q) {
        const int Q_now = q % q_stages;
        ptx::mbarrier_wait(&shared.Q_full[Q_now], q / q_stages % 2);
        now = handed_over(shared.query_tiles[Q_now]);
        warp_row = first_row + warp * 16, tile = tiles - 1;
        if (tiles == 0) return;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {  // TMA has put 16 bytes number i of row r at number i ^ r % 8
            const int row = warp * 16 + lane % 16, piece = (k % 4 * 2 + lane / 16) ^ row % 8;
            ptx::ldmatrix_x4(Q[k], ptx::shared_address(shared.Q[Q_now] + (k / 4 * Br + row) * panel + piece * 8));
        }
        __syncwarp();  // all lanes have read their rows
        if (lane == 0) ptx::mbarrier_arrive(&shared.Q_empty[Q_now]);
    };
    float S[Bc / 2];  // [64, Bc] per warpgroup
    const auto issue_S = [&] {
        ptx::mbarrier_wait(&shared.K_full[K_at.buffer], K_at.parity);  // all bytes of this tile are there
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {  // 16 columns are 32 bytes of a row; a panel has four times 16
            const uint64_t step = further(k % 4 * 32), K_panel = further(k / 4 * Bc * row_bytes);
            const uint64_t K_rows = K_matrix + further(K_at.buffer * tile_bytes) + K_panel + step;
            ptx::wgmma_rs_k_major<T, Bc>(S, Q[k], K_rows, k > 0);
        }
        ptx::wgmma_commit();
    };

    // ---- O += PV ----
    uint32_t P[Bc / 16][4];  // [64, Bc] per warpgroup
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
    // The next tile's S, of this query tile or of the next one: behind this tile's PV.
    const auto next_S = [&] {
        issue_S();
        ptx::wgmma_wait<0>(S, O, P);
        K_at.leave(shared.K_empty, lane), V_at.leave(shared.V_empty, lane);
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
    // A part of P and its sums: 16 columns of S, rounded to 16 bits, are an operand A as they lie, and never
    // leave their lanes. S stays. Returns whether this lane's bet is lost.
    float sum[2] = {INFINITY, INFINITY};  // of this lane's elements alone; nothing to bet on yet is as good as lost
    float rescale[2];                     // what older sums and outputs shrink by when the maximum grows
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
    const auto take_maximum = [&](auto part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float new_max = -INFINITY;
#pragma unroll
            for (int x = part.begin / 2 + 2 * half; x < part.end / 2; x += 4)
                new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
            new_max = row_reduce_max(new_max);
            const float old = reference[half];
            if (__ballot_sync(0xffffffff, !(sum[half] < most)) >> lane / 4 * 4 & 15)  // by one of its four lanes
                reference[half] = fmaxf(old, new_max * scale_log2 + margin<T>);
            rescale[half] = ptx::exp2(old - reference[half]);
            row_sum[half] *= rescale[half];
        }
    };
    const auto softmax = [&](auto part) {
        if (__any_sync(0xffffffff, exponentials(part))) {
            ptx::wgmma_wait<0>(O, P);  // of the part before: O may be touched
            take_maximum(part);
#pragma unroll
            for (int x = 0; x < d_head / 2; ++x) O[x] *= rescale[x / 2 % 2];
            exponentials(part);
        }
        row_sum[0] += sum[0], row_sum[1] += sum[1];
    };
    // Behind a maximum no bet is lost, and O, still the query tile's before, is left alone.
    const auto first_softmax = [&] {
        reference[0] = reference[1] = lowest, sum[0] = sum[1] = INFINITY;
        take_maximum(Part<0>()), exponentials(Part<0>());
        row_sum[0] = sum[0], row_sum[1] = sum[1];
    };

    // ---- store ----
    const auto store = [&](const QueryTile &done, const float (&reference)[2], const float (&row_sum)[2]) {
        T *O_global =
            static_cast<T *>(params.O.data) + done.batch * params.O.stride_batch + done.head * params.O.stride_head;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = row_reduce_sum(row_sum[half]);
            const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;  // rows that see no key are 0
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
    };

    take_query_tile(0), issue_S();  // each block has a query tile
    ptx::wgmma_wait<0>(S), K_at.leave(shared.K_empty, lane);
    mask(tile), first_softmax();
    for (int q = 1; tiles > 0; ++q) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;
        for (;;) {  // the first part of this tile's P is there
            issue_PV(Part<0>()), softmax(Part<1>()), issue_PV(Part<1>());
            if (tile-- == 0) break;
            next_S(), mask(tile), softmax(Part<0>());
        }

        // The next query tile begins, and as its P is there, O's registers are emptied.
        const QueryTile done = now;
        const float done_reference[2] = {reference[0], reference[1]}, done_sum[2] = {row_sum[0], row_sum[1]};
        take_query_tile(q);
        if (tiles > 0)
            next_S(), mask(tile), first_softmax();
        else
            ptx::wgmma_wait<0>(O);
        store(done, done_reference, done_sum);
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.stage = 25,
                                  .title = "No gap",
                                  .min_compute = 90,
                                  .Br = Br,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        return flash::Launch{.kernel = flash_kernel<T, d_head>,
                             .grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br)),
                             .threads = threads,
                             .shared_bytes = sizeof(Shared<T, d_head>),
                             .Q_box_rows = Br,
                             .KV_box_rows = Bc};
    });
}

extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    const FlashStatus status = flash::check(params, limits);
    return status == FLASH_OK ? flash::launch(plan(*params), *params, stream) : status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    return status == FLASH_OK ? flash::describe(limits, plan(*params), 0, description) : status;
}
