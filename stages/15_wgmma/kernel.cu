// wgmma. Four warps, a warpgroup, multiply together, straight from the tiles in shared memory. No thread
// loads a fragment of Q, K or V. S, P and O stay in registers.
//
// A block works on one query tile, which is Br = 128 rows of Q: 64 for each of its two warpgroups, 16 for each warp. It
// walks over K and V in tiles of Bc = 128 rows, the last tile first. Tiles lie in shared memory as TMA brings them, in
// panels of 64 columns, and wgmma reads them there.

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

constexpr int Br = 128;  // rows of Q (and of S, P, O) in a query tile
constexpr int Bc = 128;  // rows in a tile of K and of V
constexpr int warps = Br / 16, threads = 32 * warps;
constexpr int kv_stages = 2;  // buffers for tiles of K, and as many for tiles of V
constexpr int panel = 64;     // columns that TMA swizzles as one unit: 128 bytes of a row

// ---- pipeline ----

// The position of a producer or a consumer in a queue of `stages` buffers: the buffer, and the phase of its barriers. A
// barrier distinguishes a phase from the next one by its parity, so one bit is enough.
template <int stages>
struct PipelineState {
    uint32_t stage = 0;
    uint32_t phase = 0;

    __device__ void advance() {
        ++stage;
        if (stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head>
struct SharedStorage {
    T Q[Br * d_head];             // [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head];  // each [d_head / panel][Bc][panel]
    T V[kv_stages][Bc * d_head];  // the same
    uint64_t Q_full;              // completes its phase when Q has arrived
    uint64_t full[kv_stages];     // completes a phase when all bytes of a tile of K and of V have arrived
    uint64_t empty[kv_stages];    // completes a phase when every warp has read both tiles
};

// ---- load ----

// One block's work: Br rows of Q of one head, and the tiles of K and V that these rows see.
struct QueryTile {
    int batch, head, kv_head;
    int first_row;      // of Q and O
    int causal_offset;  // row i sees columns 0 to i + causal_offset
    int kv_tiles;       // of K and of V that the rows see
};

// Blocks start in the order of their index, x first. Neighbouring blocks work on query tiles of one head, so they read
// the same K and V at nearly the same time, and L2 has them. The last rows of a causal head see the most keys. They
// come first, so that short query tiles fill the gaps at the end.
__device__ QueryTile block_query_tile(const FlashParams &params) {
    QueryTile tile;
    tile.batch = blockIdx.z;
    tile.head = blockIdx.y;
    tile.kv_head = tile.head / (params.Hq / params.Hkv);
    tile.first_row = (gridDim.x - 1 - blockIdx.x) * Br;
    tile.causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
    const int columns = min(params.Nkv, tile.first_row + Br + tile.causal_offset);
    tile.kv_tiles = max(columns + Bc - 1, Bc) / Bc;  // rows that see no key get one fully masked tile
    return tile;
}

// Starts the load of one tile and returns without waiting for it. Its bytes count at the barrier `full`. Rows past the
// end of the tensor arrive as zeros.
__device__ void load_tile(void *tile, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// Loads the query tile's rows of Q.
template <typename T, int d_head>
__device__ void load_Q_tile(SharedStorage<T, d_head> &shared, const TensorMaps &maps, const QueryTile &query_tile) {
    ptx::mbarrier_arrive_expect_tx(&shared.Q_full, sizeof(shared.Q));
    load_tile(shared.Q, maps.Q, &shared.Q_full, query_tile.first_row, query_tile.head, query_tile.batch);
}

// Loads a tile of K and one of V into the next buffers, once all warps have read what they hold. It waits for the
// opposite parity, which a fresh barrier counts as complete: a buffer that was never filled is free.
template <typename T, int d_head>
__device__ void load_kv_tile(SharedStorage<T, d_head> &shared, PipelineState<kv_stages> &write, const TensorMaps &maps,
                             const QueryTile &query_tile, int kv_tile) {
    uint64_t *const full = &shared.full[write.stage];
    ptx::mbarrier_wait(&shared.empty[write.stage], write.phase ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, sizeof(shared.K[0]) + sizeof(shared.V[0]));
    load_tile(shared.K[write.stage], maps.K, full, kv_tile * Bc, query_tile.kv_head, query_tile.batch);
    load_tile(shared.V[write.stage], maps.V, full, kv_tile * Bc, query_tile.kv_head, query_tile.batch);
    write.advance();
}

// ---- S = QKᵀ and O += PV ----

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One warpgroup's matrix products. It knows the position in the queue of tiles and how wgmma finds them. The register
// arrays S, P and O belong to the kernel function and are passed in. Between the issue of a product and the wait for
// it, the code must not touch the product's registers.
template <typename T, int d_head>
struct Mainloop {
    static constexpr int row_bytes = panel * sizeof(T);
    static constexpr int KV_bytes = Bc * d_head * sizeof(T);

    SharedStorage<T, d_head> &shared;
    const int lane;
    const uint64_t Q_descriptor, K_descriptor, V_descriptor;
    PipelineState<kv_stages> read;

    // wgmma reads the warpgroup's 64 rows of Q and the rows of K along d_head. It reads V across the panels, so V's
    // descriptor also holds the distance from one panel to the next. 8 rows of a panel are 1,024 bytes.
    __device__ Mainloop(SharedStorage<T, d_head> &shared, int warp, int lane)
        : shared(shared),
          lane(lane),
          Q_descriptor(ptx::matrix_descriptor(shared.Q + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          K_descriptor(ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes)),
          V_descriptor(ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes)) {}

    // Waits until the next tiles of K and V have arrived.
    __device__ void wait_tiles() { ptx::mbarrier_wait(&shared.full[read.stage], read.phase); }

    // Releases both buffers, as far as this warp is concerned, and moves on to the next ones.
    __device__ void release_tiles() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.empty[read.stage]);
        read.advance();
    }

    // Issues S = QKᵀ for the next tile of K. One step is 16 columns: 32 bytes of a row, a quarter of a panel.
    __device__ __forceinline__ void issue_QK(float (&S)[Bc / 2]) {
        const uint64_t K_tile = K_descriptor + descriptor_offset(read.stage * KV_bytes);
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t K_step = K_tile + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t Q_step = Q_descriptor + descriptor_offset(k / 4 * Br * row_bytes) + step;
            ptx::wgmma_ss<T, Bc>(S, Q_step, K_step, k > 0);
        }
        ptx::wgmma_commit();
    }

    // Issues O += PV for the next tile of V. One step is 16 columns of P and 16 rows of V.
    __device__ __forceinline__ void issue_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            const uint64_t V_rows = descriptor_offset(read.stage * KV_bytes) + descriptor_offset(k * 16 * row_bytes);
            ptx::wgmma_rs<T, d_head>(O, P[k], V_descriptor + V_rows, true);
        }
        ptx::wgmma_commit();
    }

    // Each waits for its product. After PV the warp has read both tiles.
    __device__ __forceinline__ void wait_S(float (&S)[Bc / 2]) { ptx::wgmma_wait<0>(S); }
    __device__ __forceinline__ void wait_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        ptx::wgmma_wait<0>(O, P);
        release_tiles();
    }
};

// ---- registers of an accumulator ----

// A warp holds 16 rows, and each thread two of them: lane / 4 and lane / 4 + 8. Of every 8 columns a thread holds
// columns 2 (lane % 4) and 2 (lane % 4) + 1: in registers 4n and 4n + 1 for its first row, 4n + 2 and 4n + 3 for its
// second. These are the row of register x, among the warp's 16, and its column.
__device__ inline int accumulator_row(int x, int lane) {
    return x / 2 % 2 * 8 + lane / 4;
}
__device__ inline int accumulator_column(int x, int lane) {
    return x / 4 * 8 + lane % 4 * 2 + x % 2;
}

// The maximum and the sum of x over the four lanes that hold one row.
__device__ inline float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ inline float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// ---- mask ----

// Sets S to -infinity where a row must not see a key: right of the diagonal, and past the end of K. warp_row is the
// warp's first row of Q, which sees the fewest keys. If it sees the whole tile, every row does, and there is nothing to
// do.
__device__ __forceinline__ void mask(float (&S)[Bc / 2], const QueryTile &query_tile, int warp_row, int kv_tile,
                                     int Nkv, int lane) {
    const int first_column = kv_tile * Bc;
    if (first_column + Bc <= min(Nkv, warp_row + 1 + query_tile.causal_offset)) return;
#pragma unroll
    for (int x = 0; x < Bc / 2; ++x) {
        const int row = warp_row + accumulator_row(x, lane);
        const int column = first_column + accumulator_column(x, lane);
        if (column >= min(Nkv, row + 1 + query_tile.causal_offset)) S[x] = -INFINITY;
    }
}

// ---- online softmax ----

// What the epilogue needs of a query tile's softmax. Every array of two elements has one element for each of the
// thread's two rows.
struct RowStatistics {
    float shift[2];    // P = 2^(scale_log2 S - shift)
    float sum[2];      // of P over all columns
    float inverse[2];  // of the sum; 0 for a row that sees no key, so that its O is 0
};

// The online softmax of a thread's two rows.
template <typename T, int Bc>
struct OnlineSoftmax {
    float scale_log2;                           // exp(scale x) = 2^(scale_log2 x)
    float row_max[2] = {-INFINITY, -INFINITY};  // of S, not scaled
    float row_sum[2] = {};                      // of P over all tiles so far, in this lane's columns only
    float rescale[2];                           // the factor for older sums and for O when the maximum grows

    // Takes the new maximum of each row and turns S into P, not yet rounded.
    __device__ __forceinline__ void exponentiate(float (&S)[Bc / 2]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float new_max = row_max[row];
#pragma unroll
            for (int x = 2 * row; x < Bc / 2; x += 4) new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
            new_max = row_reduce_max(new_max);
            const float top = new_max == -INFINITY ? 0.0f : new_max;  // the row may not have seen any key yet
            const float shift = top * scale_log2;
            rescale[row] = ptx::exp2((row_max[row] - top) * scale_log2);
            row_max[row] = new_max;

            float sum = 0.0f;  // of this lane's columns only
#pragma unroll
            for (int x = 2 * row; x < Bc / 2; x += 4) {
                S[x] = ptx::exp2(S[x] * scale_log2 - shift);  // one multiply-add and one ex2
                S[x + 1] = ptx::exp2(S[x + 1] * scale_log2 - shift);
                sum += S[x] + S[x + 1];
            }
            row_sum[row] = row_sum[row] * rescale[row] + sum;
        }
    }

    // Multiplies O by what older outputs shrink by. If no row of the warp has a new maximum, O stays as it is.
    template <int registers>
    __device__ __forceinline__ void rescale_O(float (&O)[registers]) const {
        if (!__any_sync(0xffffffff, rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
#pragma unroll
        for (int x = 0; x < registers; ++x) O[x] *= rescale[x / 2 % 2];
    }

    // Rounds P to 16 bits. 16 columns of S have the layout of wgmma's operand A, so P never leaves its lanes.
    __device__ __forceinline__ void round_P(const float (&S)[Bc / 2], uint32_t (&P)[Bc / 16][4]) const {
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i) P[k][i] = pack<T>(S[8 * k + 2 * i], S[8 * k + 2 * i + 1]);
    }

    // Reduces the sums over the four lanes of each row, after the last tile.
    __device__ __forceinline__ RowStatistics finalize() const {
        RowStatistics rows;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            rows.shift[row] = row_max[row] * scale_log2;
            rows.sum[row] = row_reduce_sum(row_sum[row]);
            rows.inverse[row] = rows.sum[row] > 0.0f ? 1.0f / rows.sum[row] : 0.0f;
        }
        return rows;
    }
};

// ---- store ----

// Four lanes that hold a row, four registers each: afterwards register i of lane k is what register k of lane i was.
__device__ void transpose(uint32_t (&x)[4], int lane) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {  // lanes that differ in one bit exchange the registers that do
        const bool high = lane & step;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & step) continue;
            const uint32_t received = __shfl_xor_sync(0xffffffff, high ? x[i] : x[i + step], step);
            if (high)
                x[i] = received;
            else
                x[i + step] = received;
        }
    }
}

// Divides the warp's 16 rows of O by their sums and stores them, 16 bytes from each lane at a time.
template <typename T, int d_head>
__device__ __forceinline__ void store_O(const FlashParams &params, const float (&O)[d_head / 2],
                                        const RowStatistics &rows, const QueryTile &query_tile, int warp, int lane) {
    T *const O_head = static_cast<T *>(params.O.data) + query_tile.batch * params.O.stride_batch +
                      query_tile.head * params.O.stride_head;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int i = query_tile.first_row + warp * 16 + 8 * row + lane / 4;
#pragma unroll
        for (int n = 0; n < d_head / 8; n += 4) {  // 32 columns: 16 bytes for each of the row's four lanes
            uint32_t pieces[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int x = 4 * (n + k) + 2 * row;
                pieces[k] = pack<T>(O[x] * rows.inverse[row], O[x + 1] * rows.inverse[row]);
            }
            transpose(pieces, lane);
            if (i < params.Nq)
                *reinterpret_cast<uint4 *>(O_head + i * params.O.stride_row + 8 * n + lane % 4 * 8) =
                    make_uint4(pieces[0], pieces[1], pieces[2], pieces[3]);
        }
    }
}

// Stores the natural logarithm of each row's sum of exp(scale * score), if the caller asked for it.
__device__ __forceinline__ void store_log_sum_exp(const FlashParams &params, const RowStatistics &rows,
                                                  const QueryTile &query_tile, int warp, int lane) {
    if (!params.log_sum_exp) return;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int i = query_tile.first_row + warp * 16 + 8 * row + lane / 4;
        if (lane % 4 == 0 && i < params.Nq)
            params.log_sum_exp[(int64_t{query_tile.batch} * params.Hq + query_tile.head) * params.Nq + i] =
                rows.sum[row] > 0.0f ? rows.shift[row] * 0.693147181f + logf(rows.sum[row]) : -INFINITY;
    }
}

// ---- kernel ----

// grid: (Nq / Br rounded up, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int lane = threadIdx.x % 32;
    const QueryTile query_tile = block_query_tile(params);
    PipelineState<kv_stages> write;  // of thread 0, which loads the tiles for all

    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&shared.Q_full, 1);  // one thread arrives, and TMA counts the bytes
        for (int stage = 0; stage < kv_stages; ++stage) {
            ptx::mbarrier_init(&shared.full[stage], 1);
            ptx::mbarrier_init(&shared.empty[stage], warps);
        }
        ptx::fence_mbarrier_init();
        load_Q_tile(shared, maps, query_tile);
        load_kv_tile(shared, write, maps, query_tile, query_tile.kv_tiles - 1);
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    Mainloop<T, d_head> mainloop(shared, warp, lane);
    OnlineSoftmax<T, Bc> softmax{params.scale * 1.44269504f};
    float S[Bc / 2];           // [64, Bc] per warpgroup
    uint32_t P[Bc / 16][4];    // [64, Bc] per warpgroup
    float O[d_head / 2] = {};  // [64, d_head] per warpgroup
    const int warp_row = query_tile.first_row + warp * 16;

    ptx::mbarrier_wait(&shared.Q_full, 0);
    for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
        if (threadIdx.x == 0 && kv_tile > 0) load_kv_tile(shared, write, maps, query_tile, kv_tile - 1);
        __syncwarp();
        mainloop.wait_tiles();
        mainloop.issue_QK(S);
        mainloop.wait_S(S);
        mask(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
        softmax.exponentiate(S);
        softmax.rescale_O(O);
        softmax.round_P(S, P);
        mainloop.issue_PV(O, P);
        mainloop.wait_PV(O, P);
    }

    const RowStatistics rows = softmax.finalize();
    store_O<T, d_head>(params, O, rows, query_tile, warp, lane);
    store_log_sum_exp(params, rows, query_tile, warp, lane);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "wgmma",
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
                             .grid = dim3((params.Nq + Br - 1) / Br, params.Hq, params.B),
                             .threads = threads,
                             .shared_bytes = sizeof(SharedStorage<T, d_head>),
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
