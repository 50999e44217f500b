// Stage 27: FP8. Q, K, V and P are e4m3, a byte each, and the tensor cores multiply twice as many in a clock. They take
// V transposed alone, are exact to 13 bits alone, and P has but 18 powers of two: each is a piece of this kernel.
//
// A query tile is Br = 128 rows of Q, of which each of a block's two consumer warpgroups has 64 and each warp 16. For
// it the block walks over K and V in tiles of Bc = 128 rows. The producer is ahead of them by as many tiles as there
// are buffers, and does not stop at a query tile's end. Two more warps transpose V on the way.

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

constexpr int Br = 128;             // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 128;             // rows of K and V in a tile
constexpr int consumers = Br / 64;  // warpgroups that compute; one more produces
constexpr int threads = 128 * (consumers + 1);
constexpr int producer_registers = 40, consumer_registers = 232;  // a thread; together what 3 x 168 were at the launch
constexpr int transposers = 2;                                    // warps of the producer's warpgroup
constexpr int q_stages = 2, kv_stages = 2;                        // buffers for tiles of Q; of K, V and V transposed
constexpr float lowest = -0x1p127f;  // below all scores; finite, so that a score of -infinity less it is no NaN
// P of a row's maximum is 2^headroom: e4m3 ends at 448 above, and below at 2^-9, with full precision at 2^-6.
constexpr float headroom = 8;

// P in two parts.
template <int number>
struct Part {
    static constexpr int begin = Bc / 2 * number, end = begin + Bc / 2;  // columns
};

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <int d_head>
struct Shared {
    e4m3 Q[q_stages][Br * d_head], K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];  // [rows][d_head]
    e4m3 V_transposed[kv_stages][d_head * Bc];                                            // [d_head][Bc]
    uint64_t Q_full[q_stages], Q_empty[q_stages];                                         // mbarriers
    uint64_t K_full[kv_stages], K_empty[kv_stages], V_full[kv_stages], V_empty[kv_stages];
    uint64_t transposed_full[kv_stages], transposed_empty[kv_stages];
};

// One piece of the work: rows of Q from first_row on, of one head. They see `tiles` tiles of K and V; row i sees
// columns 0 to i + diagonal.
struct QueryTile {
    int batch, head, kv_head, first_row, diagonal, tiles;
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

// A tile of V to [d_head][Bc], as the tensor cores take bytes: 16 columns (a chunk) of 32 rows at a time, `chunks` of
// them from `first` on. Of 16 rows place 4 c + e gets row 2 c + e % 2 + 8 (e / 2): so are the columns of P held.
template <int d_head>
__device__ void transpose_tile(const e4m3 *V, e4m3 *transposed, int first, int chunks, int lane) {
    // The lane's row of V for ldmatrix; of V transposed for stmatrix, where rows 0, 2, 4, 6, 9, 11, 13 and 15 go
    // together, and the other eight: they are in eight different banks.
    const uint32_t from = ptx::shared_address(V) + lane * d_head + lane * d_head / 128 % (d_head / 16) * 16;
    const int row = 2 * (lane % 8) + ((lane % 8 >= 4) ^ lane / 8 % 2);
    const uint32_t to = ptx::shared_address(transposed) + row * Bc + (row % 8 * 16 ^ lane / 16 * 16);
    const uint32_t even = 0x6420, odd = 0x7531;  // a register has two rows of V, by two columns: bytes of one column
    const uint32_t one = lane < 16 ? even : odd, other = lane < 16 ? odd : even;
    for (int chunk = first; chunk < first + chunks; ++chunk)
#pragma unroll
        for (int rows = 0; rows < Bc; rows += 32) {
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

    const int query_tiles = params.Hq * params.B * ((params.Nq + Br - 1) / Br);
    constexpr int row_bytes = d_head, tile_bytes = Bc * d_head, Q_bytes = Br * d_head;
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);  // one for the warp, as the compiler now knows

    if (threadIdx.x == 0) {
        for (int s = 0; s < q_stages; ++s) {
            ptx::mbarrier_init(&shared.Q_full[s], 1);
            ptx::mbarrier_init(&shared.Q_empty[s], 4 * consumers);
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
    __syncthreads();  // nobody waits at a barrier that is not there yet

    // ---- load ----
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers>();
        const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0), lane = threadIdx.x % 32;
        if (warp == 0 && lane == 0) {
            uint32_t j = 0;  // tiles of K and of V so far, of all query tiles: the queues know of no others
            for (int t, q = 0; (t = query_tile_number(params.causal, query_tiles, q)) < query_tiles; ++q) {
                const auto [batch, head, kv_head, first_row, diagonal, tiles] = query_tile(params, t);
                const int Q_now = q % q_stages;
                ptx::mbarrier_wait(&shared.Q_empty[Q_now], q / q_stages % 2 ^ 1);
                load_tile(shared.Q[Q_now], Q_bytes, maps.Q, &shared.Q_full[Q_now], first_row, head, batch);
                for (int tile = tiles - 1; tile >= 0; --tile, ++j) {  // rows behind the last one arrive as zeros
                    // A buffer's use number j / kv_stages; the one before it must be over. Before the first there is
                    // none, and a fresh barrier lets parity 1 pass.
                    const uint32_t s = j % kv_stages, before = j / kv_stages % 2 ^ 1, row = tile * Bc;
                    ptx::mbarrier_wait(&shared.K_empty[s], before);
                    load_tile(shared.K[s], tile_bytes, maps.K, &shared.K_full[s], row, kv_head, batch);
                    ptx::mbarrier_wait(&shared.V_empty[s], before);
                    load_tile(shared.V[s], tile_bytes, maps.V, &shared.V_full[s], row, kv_head, batch);
                }
            }
        }
        if (warp > 0 && warp <= transposers) {
            constexpr int chunks = d_head / 16 / transposers;
            uint32_t j = 0;
            for (int t, q = 0; (t = query_tile_number(params.causal, query_tiles, q)) < query_tiles; ++q) {
                for (const int last = j + query_tile(params, t).tiles; j < last; ++j) {
                    const uint32_t s = j % kv_stages, now = j / kv_stages % 2;
                    ptx::mbarrier_wait(&shared.V_full[s], now);
                    ptx::mbarrier_wait(&shared.transposed_empty[s], now ^ 1);
                    transpose_tile<d_head>(shared.V[s], shared.V_transposed[s], (warp - 1) * chunks, chunks, lane);
                    ptx::fence_proxy_async();  // each lane's own bytes, for wgmma
                    __syncwarp();
                    if (lane == 0) ptx::mbarrier_arrive(&shared.V_empty[s]);
                    if (lane == 0) ptx::mbarrier_arrive(&shared.transposed_full[s]);
                }
            }
        }
        return;
    }
    ptx::setmaxnreg_inc<consumer_registers>();

    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    const int lane = threadIdx.x % 32;

    // How wgmma finds the tiles: the warpgroup's 64 rows of Q and the rows of K, along d_head, and V's columns, along
    // its rows.
    const uint64_t Q_matrix =
        ptx::matrix_descriptor(shared.Q[0] + warpgroup * 64 * d_head, 0, 8 * row_bytes, row_bytes);
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes, row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V_transposed, 0, 8 * Bc, Bc);

    uint32_t j = 0;  // as the producer counts
    for (int t, q = 0; (t = query_tile_number(params.causal, query_tiles, q)) < query_tiles; ++q) {
        const auto [batch, head, kv_head, first_row, diagonal, tiles] = query_tile(params, t);
        const int warp_row = first_row + threadIdx.x / 32 * 16, Q_now = q % q_stages;
        float O[d_head / 2] = {};  // [64, d_head] per warpgroup
        // For each of the two rows: what P = 2^(scale log2(e) S - reference) refers to, the scaled maximum less the
        // headroom; of the sum of P this lane's part.
        float reference[2] = {lowest, lowest}, row_sum[2] = {};
        // exp(scale x) = 2^(scale log2(e) x), and each head's Q and K have a factor.
        const float scale_log2 = params.scale * 1.44269504f * params.Q_scales[batch * params.Hq + head] *
                                 params.K_scales[batch * params.Hkv + kv_head];

        ptx::mbarrier_wait(&shared.Q_full[Q_now], q / q_stages % 2);

        // ---- S = QKᵀ ----
        float S[Bc / 2];                             // [64, Bc] per warpgroup
        const auto issue_S = [&](uint32_t number) {  // of the queue's tile
            const uint32_t now = number % kv_stages;
            ptx::mbarrier_wait(&shared.K_full[now], number / kv_stages % 2);  // all bytes of this tile are there
            ptx::wgmma_fence(S);
#pragma unroll
            for (int k = 0; k < d_head / 32; ++k)  // 32 columns are 32 bytes of a row
                ptx::wgmma_ss<e4m3, Bc>(S, Q_matrix + further(Q_now * Q_bytes + 32 * k),
                                        K_matrix + further(now * tile_bytes + 32 * k), k > 0);
            ptx::wgmma_commit();
        };

        // ---- O += PV ----
        float PV[d_head / 2];    // of one tile alone: what it is added to is exact to 13 bits, so O stays outside
        uint32_t P[Bc / 32][4];  // [64, Bc] per warpgroup
        const auto issue_PV = [&](uint32_t number, auto part) {
            const uint32_t now = number % kv_stages;
            if (part.begin == 0) ptx::mbarrier_wait(&shared.transposed_full[now], number / kv_stages % 2);
            ptx::wgmma_fence(PV, P);
#pragma unroll
            for (int k = part.begin / 32; k < part.end / 32; ++k)  // 32 rows of V: 32 bytes of each column's
                ptx::wgmma_rs<e4m3, d_head>(PV, P[k], V_matrix + further(now * tile_bytes + 32 * k), k > 0);
            ptx::wgmma_commit();
        };

        // ---- O = rescale O + PV ----
        float rescale[2];  // what older sums and outputs shrink by when the maximum grows
        const auto add_PV = [&](uint32_t number) {
            if (lane == 0) ptx::mbarrier_arrive(&shared.transposed_empty[number % kv_stages]);
#pragma unroll
            for (int x = 0; x < d_head / 2; ++x) O[x] = fmaf(O[x], rescale[x / 2 % 2], PV[x]);
        };

        issue_S(j);
        ptx::wgmma_wait<0>(S);
        for (int tile = tiles - 1;; --tile, ++j) {
            if (lane == 0) ptx::mbarrier_arrive(&shared.K_empty[j % kv_stages]);  // free as far as this warp goes
            if (lane == 0 && tile == 0) ptx::mbarrier_arrive(&shared.Q_empty[Q_now]);

            // ---- mask ----
            const int first_column = tile * Bc;
            if (first_column + Bc > min(params.Nkv, warp_row + 1 + diagonal)) {  // the warp's first row sees fewest
#pragma unroll
                for (int x = 0; x < Bc / 2; ++x) {
                    const int i = warp_row + x / 2 % 2 * 8 + lane / 4;
                    if (first_column + x / 4 * 8 + lane % 4 * 2 + x % 2 >= min(params.Nkv, i + 1 + diagonal))
                        S[x] = -INFINITY;
                }
            }

            // ---- online softmax ----
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float new_max = -INFINITY;
#pragma unroll
                for (int x = 2 * half; x < Bc / 2; x += 4) new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
                const float now = fmaxf(reference[half], row_reduce_max(new_max) * scale_log2 - headroom);
                rescale[half] = ptx::exp2(reference[half] - now);
                row_sum[half] *= rescale[half];
                reference[half] = now;
            }
            // A part of P and its sums. 16 columns of S are four numbers of each row in a lane, the four bytes of a
            // register of P: columns 2 c, 2 c + 1, 2 c + 8 and 2 c + 9, c = lane % 4, in the places 4 c to 4 c + 3.
            const auto softmax_and_PV = [&](auto part) {
#pragma unroll
                for (int half = 0; half < 2; ++half)
#pragma unroll
                    for (int n = part.begin / 16; n < part.end / 16; ++n) {
                        float p[4];
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            const float s = S[8 * n + 4 * (e / 2) + 2 * half + e % 2];
                            p[e] = ptx::exp2(fmaf(s, scale_log2, -reference[half]));  // one multiply-add, one ex2
                            row_sum[half] += p[e];
                        }
                        P[n / 2][2 * (n % 2) + half] = ptx::pack_e4m3(p[0], p[1], p[2], p[3]);
                    }
                issue_PV(j, part);
            };
            softmax_and_PV(Part<0>());
            softmax_and_PV(Part<1>());
            if (tile == 0) break;

            ptx::wgmma_wait<0>(PV, P);
            issue_S(j + 1);  // goes on under the sum
            add_PV(j);
            ptx::wgmma_wait<0>(S);
        }
        ptx::wgmma_wait<0>(PV, P);
        add_PV(j);
        ++j;

        // ---- store ----
        using T = __nv_bfloat16;
        T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head;
        const float V_scale = params.V_scales[batch * params.Hkv + kv_head];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = row_reduce_sum(row_sum[half]);
            const float inverse = sum > 0.0f ? V_scale / sum : 0.0f;  // rows that see no key are 0
            const int i = warp_row + 8 * half + lane / 4;
            if (params.log_sum_exp && lane % 4 == 0 && i < params.Nq)
                params.log_sum_exp[(int64_t{batch} * params.Hq + head) * params.Nq + i] =
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
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.stage = 27,
                                  .title = "FP8",
                                  .min_compute = 90,
                                  .Br = Br,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true,  // sm_90a
                                  .e4m3 = true};

static flash::Launch plan(const FlashParams &params) {
    return flash::choose_d_head(params, [&]<int d_head>() {
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
    const FlashStatus status = flash::check_sizes(params, limits);
    return status == FLASH_OK ? flash::describe(limits, plan(*params), 0, description) : status;
}
