// Stage 17: persistent blocks. There are as many blocks as multiprocessors, and each works on one query tile after the
// other: the producer asks for the next one's Q, K and V while the consumers are still at the end of this one.
//
// A block works on Br = 128 rows of Q at a time, each of its consumer warpgroups on 64 of them and each warp on 16, and
// walks over K and V in tiles of Bc = 128 rows. The producer is ahead of them by as many tiles as there are buffers; K
// and V have queues of their own, so a buffer of K is filled again while P is still multiplied by V.

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
constexpr int panel = 64;  // elements in 128 bytes: the columns that TMA swizzles together

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <typename T, int d_head>
struct Shared {
    T Q[q_stages][Br * d_head];  // [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];
    uint64_t Q_full[q_stages], Q_empty[q_stages];  // mbarriers
    uint64_t K_full[kv_stages], K_empty[kv_stages], V_full[kv_stages], V_empty[kv_stages];
};

// One piece of the work: rows of Q from first_row on, of one head. They see `tiles` tiles of K and V; row i sees
// columns 0 to i + diagonal.
struct QueryTile {
    int batch, head, kv_head, first_row, diagonal, tiles;
};

// Piece number t. Of all heads the last rows, which see most keys if causal, come first.
__device__ QueryTile query_tile(const FlashParams &params, int t) {
    const int batch = t / params.Hq % params.B, head = t % params.Hq, kv_head = head / (params.Hq / params.Hkv);
    const int first_row = ((params.Nq + Br - 1) / Br - 1 - t / (params.Hq * params.B)) * Br;
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
            for (int t = blockIdx.x, q = 0; t < query_tiles; t += gridDim.x, ++q) {
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
        return;
    }
    ptx::setmaxnreg_inc<consumer_registers>();

    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    const int lane = threadIdx.x % 32;
    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    // How wgmma finds the tiles: the warpgroup's 64 rows of Q and the rows of K, along d_head, and V's columns, along
    // its rows. 8 rows of a panel are 1,024 bytes.
    const uint64_t Q_matrix = ptx::matrix_descriptor(shared.Q[0] + warpgroup * 64 * panel, 0, 8 * row_bytes);
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes);

    uint32_t j = 0;  // as the producer counts
    for (int t = blockIdx.x, q = 0; t < query_tiles; t += gridDim.x, ++q) {
        const auto [batch, head, kv_head, first_row, diagonal, tiles] = query_tile(params, t);
        const int warp_row = first_row + threadIdx.x / 32 * 16, Q_now = q % q_stages;
        float O[d_head / 2] = {};  // [64, d_head] per warpgroup
        // For each of the two rows: the maximum of S, not scaled; of the sum of P this lane's part.
        float row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {};

        ptx::mbarrier_wait(&shared.Q_full[Q_now], q / q_stages % 2);
        for (int tile = tiles - 1; tile >= 0; --tile, ++j) {
            const uint32_t now = j % kv_stages, parity = j / kv_stages % 2;

            // ---- S = QKᵀ ----
            float S[Bc / 2];                                  // [64, Bc] per warpgroup
            ptx::mbarrier_wait(&shared.K_full[now], parity);  // all bytes of this tile are there
            ptx::wgmma_fence(S);
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {  // 16 columns are 32 bytes of a row; a panel has four times 16
                const uint64_t step = further(k % 4 * 32), Q_panel = further(Q_now * Q_bytes + k / 4 * Br * row_bytes);
                const uint64_t K_tile = further(now * tile_bytes), K_panel = further(k / 4 * Bc * row_bytes);
                ptx::wgmma_ss<T, Bc>(S, Q_matrix + Q_panel + step, K_matrix + K_tile + K_panel + step, k > 0);
            }
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>(S);
            if (lane == 0) ptx::mbarrier_arrive(&shared.K_empty[now]);  // free as far as this warp goes
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
            float rescale[2];  // what older sums and outputs shrink by when the maximum grows
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float new_max = row_max[half];
#pragma unroll
                for (int x = 2 * half; x < Bc / 2; x += 4) new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
                new_max = row_reduce_max(new_max);
                const float top = new_max == -INFINITY ? 0.0f : new_max;  // a row may not see any key yet
                const float shift = top * scale_log2;
                rescale[half] = ptx::exp2((row_max[half] - top) * scale_log2);
                row_max[half] = new_max;

                float sum = 0.0f;  // of this lane's elements alone
#pragma unroll
                for (int x = 2 * half; x < Bc / 2; x += 4) {
                    S[x] = ptx::exp2(S[x] * scale_log2 - shift);  // one multiply-add, one ex2
                    S[x + 1] = ptx::exp2(S[x + 1] * scale_log2 - shift);
                    sum += S[x] + S[x + 1];
                }
                row_sum[half] = row_sum[half] * rescale[half] + sum;
            }
            if (__any_sync(0xffffffff, rescale[0] != 1.0f || rescale[1] != 1.0f)) {  // else all rows keep their maximum
#pragma unroll
                for (int x = 0; x < d_head / 2; ++x) O[x] *= rescale[x / 2 % 2];
            }

            // 16 columns of S, rounded to 16 bits, are an operand A as they lie: P never leaves its lanes.
            uint32_t P[Bc / 16][4];  // [64, Bc] per warpgroup
#pragma unroll
            for (int k = 0; k < Bc / 16; ++k)
#pragma unroll
                for (int i = 0; i < 4; ++i) P[k][i] = pack<T>(S[8 * k + 2 * i], S[8 * k + 2 * i + 1]);

            // ---- O += PV ----
            ptx::mbarrier_wait(&shared.V_full[now], parity);
            ptx::wgmma_fence(O, P);
#pragma unroll
            for (int k = 0; k < Bc / 16; ++k) {
                const uint64_t V_rows = further(now * tile_bytes) + further(k * 16 * row_bytes);  // of 16 rows
                ptx::wgmma_rs<T, d_head>(O, P[k], V_matrix + V_rows, true);
            }
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>(O);
            if (lane == 0) ptx::mbarrier_arrive(&shared.V_empty[now]);
        }

        // ---- store ----
        T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = row_reduce_sum(row_sum[half]);
            const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;  // rows that see no key are 0
            const int i = warp_row + 8 * half + lane / 4;
            if (params.log_sum_exp && lane % 4 == 0 && i < params.Nq)
                params.log_sum_exp[(int64_t{batch} * params.Hq + head) * params.Nq + i] =
                    sum > 0.0f ? row_max[half] * params.scale + logf(sum) : -INFINITY;
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

constexpr flash::Limits limits = {.stage = 17,
                                  .title = "Persistent blocks",
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
