// TMA. One thread starts the load of whole tiles, and TMA swizzles them on the way. Barriers in shared memory
// tell when a tile has arrived ("full") and when its buffer may be filled again ("empty"). The products are those of
// stage masking.
//
// A block of 4 warps works on one query tile, which is Br = 128 rows of Q: 32 for each warp. It walks over K and V in
// tiles of Bc = 64 rows, the last tile first. Tiles lie in shared memory as TMA brings them, in panels of 64 columns.
// ldmatrix reads 16x16 pieces of them into registers in the layout that mma wants ("fragments", drawn in the README of
// stage tensor_cores).

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"

constexpr int Br = 128;  // rows of Q (and of S, P, O) in a query tile
constexpr int Bc = 64;   // rows in a tile of K and of V
constexpr int warps = 4, threads = 32 * warps;
constexpr int warp_rows = Br / warps;  // rows of Q that a warp works on
constexpr int kv_stages = 2;           // buffers for tiles of K, and as many for tiles of V
constexpr int chunk = 8;               // elements in 16 bytes: a row of an 8x8 matrix
constexpr int panel = 64;              // columns that TMA swizzles as one unit: 128 bytes of a row

// What a warp computes, in pieces of mma.m16n8k16:
constexpr int m_tiles = warp_rows / 16;  // S, P, O: pieces of 16 rows
constexpr int n_tiles = Bc / 8;          // S: pieces of 8 columns
constexpr int p_steps = Bc / 16;         // O += PV: steps of 16 along the rows of V
// ... and d_head / 16 steps along d_head for S = QKᵀ, d_head / 8 pieces of 8 columns for O.

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

// A block's shared memory. TMA wants each tile at a multiple of 1,024 bytes.
template <typename T, int d_head>
struct SharedStorage {
    T Q[Br * d_head];             // [d_head / panel][Br][panel]; O's way out, too
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

// Blocks start in the order of their index, x first. Of all heads the last rows come first, which see the most keys if
// causal.
__device__ QueryTile block_query_tile(const FlashParams &params) {
    QueryTile tile;
    tile.batch = blockIdx.y;
    tile.head = blockIdx.x;
    tile.kv_head = tile.head / (params.Hq / params.Hkv);
    tile.first_row = (gridDim.z - 1 - blockIdx.z) * Br;
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

// ---- fragments ----

// Where element 8 * c of row `row` lies in a tile of `rows` rows: in panel c / 8, whose rows have 8 chunks. TMA has
// stored chunk c at position c XOR row, modulo 8.
template <int rows>
__device__ int tile_offset(int row, int c) {
    return (c / 8 * rows + row) * panel + (c ^ row) % 8 * chunk;
}

// An address of tile_offset's that is `down` rows further down (a multiple of 8) and c chunks (a multiple of 2) to the
// right. Both are constants, because the compiler has unrolled the loops.
template <typename T, int rows>
__device__ uint32_t piece_address(uint32_t first, int down, int c) {
    return (first ^ c % 8 * chunk * sizeof(T)) + (c / 8 * rows + down) * panel * sizeof(T);
}

// Q as operand A of S = QKᵀ, the warp's 32 rows at step k along d_head. first: the address that this lane gives
// ldmatrix for the piece at k = 0.
template <typename T, int d_head>
__device__ void load_Q_fragment(uint32_t (&Q_fragment)[m_tiles][4], uint32_t first, int k) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) ptx::ldmatrix_x4(Q_fragment[m], piece_address<T, Br>(first, 16 * m, 2 * k));
}

// K as operand B of S = QKᵀ, all Bc rows at step k along d_head: rows of K are the columns of Kᵀ.
template <typename T, int d_head>
__device__ void load_K_fragment(uint32_t (&K_fragment)[n_tiles][2], uint32_t first, int k) {
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 0-7 right, rows 8-15 left, rows 8-15 right
        ptx::ldmatrix_x4(piece, piece_address<T, Bc>(first, 8 * n, 2 * k));
        K_fragment[n][0] = piece[0], K_fragment[n][1] = piece[1];
        K_fragment[n + 1][0] = piece[2], K_fragment[n + 1][1] = piece[3];
    }
}

// V as operand B of O += PV, rows 16 k to 16 k + 15, all d_head columns: V's rows are what is summed over, so transpose
// on the way.
template <typename T, int d_head>
__device__ void load_V_fragment(uint32_t (&V_fragment)[d_head / 8][2], uint32_t first, int k) {
#pragma unroll
    for (int n = 0; n < d_head / 8; n += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 8-15 left, rows 0-7 right, rows 8-15 right
        ptx::ldmatrix_x4_trans(piece, piece_address<T, Bc>(first, 16 * k, n));
        V_fragment[n][0] = piece[0], V_fragment[n][1] = piece[1];
        V_fragment[n + 1][0] = piece[2], V_fragment[n + 1][1] = piece[3];
    }
}

// ---- mask ----

// Sets S to -infinity where a row must not see a key: right of the diagonal, and past the end of K. warp_row is the
// warp's first row of Q, which sees the fewest keys. If it sees the whole tile, every row does, and there is nothing to
// do.
__device__ __forceinline__ void mask(float (&S)[m_tiles][n_tiles][4], const QueryTile &query_tile, int warp_row,
                                     int kv_tile, int Nkv, int lane) {
    const int first_column = kv_tile * Bc;
    if (first_column + Bc <= min(Nkv, warp_row + 1 + query_tile.causal_offset)) return;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int n = 0; n < n_tiles; ++n)
#pragma unroll
            for (int x = 0; x < 4; ++x) {
                const int row = warp_row + 16 * m + x / 2 * 8 + lane / 4;
                const int column = first_column + 8 * n + lane % 4 * 2 + x % 2;
                if (column >= min(Nkv, row + 1 + query_tile.causal_offset)) S[m][n][x] = -INFINITY;
            }
}

// ---- softmax ----

// The maximum and the sum of x over the four lanes that hold one row.
__device__ float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// ---- store ----

// Divides the warp's rows of O by their sums and stores them. They pass through the warp's own rows of Q, which no
// other warp reads, so that rows leave in pieces of 16 bytes. O_tile: warp_rows rows of each panel.
template <typename T, int d_head>
__device__ __forceinline__ void store_O(const FlashParams &params, T *O_tile, const float (&O)[m_tiles][d_head / 8][4],
                                        const float (&row_sum)[m_tiles][2], const QueryTile &query_tile, int warp_row,
                                        int lane) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float inverse = row_sum[m][row] > 0.0f ? 1.0f / row_sum[m][row] : 0.0f;  // rows that see no key: 0
            const int tile_row = 16 * m + 8 * row + lane / 4;
#pragma unroll
            for (int n = 0; n < d_head / 8; ++n)
                *reinterpret_cast<uint32_t *>(O_tile + tile_offset<Br>(tile_row, n) + lane % 4 * 2) =
                    pack<T>(O[m][n][2 * row] * inverse, O[m][n][2 * row + 1] * inverse);
        }
    __syncwarp();  // the warp's rows are complete
    T *const O_head = static_cast<T *>(params.O.data) + query_tile.batch * params.O.stride_batch +
                      query_tile.head * params.O.stride_head;
    constexpr int chunks = d_head / chunk;
#pragma unroll
    for (int i = 0; i < warp_rows * chunks; i += 32) {
        const int tile_row = (i + lane) / chunks;
        const int c = (i + lane) % chunks;
        T *const to = O_head + (warp_row + tile_row) * params.O.stride_row + c * chunk;
        if (warp_row + tile_row < params.Nq)
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(O_tile + tile_offset<Br>(tile_row, c));
    }
}

// Stores the natural logarithm of each row's sum of exp(scale * score), if the caller asked for it.
__device__ __forceinline__ void store_log_sum_exp(const FlashParams &params, const float (&row_max)[m_tiles][2],
                                                  const float (&row_sum)[m_tiles][2], const QueryTile &query_tile,
                                                  int warp_row, int lane) {
    if (!params.log_sum_exp) return;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int i = warp_row + 16 * m + 8 * row + lane / 4;
            if (lane % 4 == 0 && i < params.Nq)
                params.log_sum_exp[(int64_t{query_tile.batch} * params.Hq + query_tile.head) * params.Nq + i] =
                    row_sum[m][row] > 0.0f ? row_max[m][row] * params.scale + logf(row_sum[m][row]) : -INFINITY;
        }
}

// ---- kernel ----

// At d_head 64 three blocks share a multiprocessor, at 128 two: the compiler must not take more registers than that.
// grid: (Hq, B, Nq / Br rounded up)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads, d_head == 64 ? 3 : 2)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head> *>(shared_bytes);
    constexpr int tile_bytes = Bc * d_head * sizeof(T);
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const QueryTile query_tile = block_query_tile(params);
    const int warp_row = query_tile.first_row + warp * warp_rows;
    PipelineState<kv_stages> write;  // of thread 0, which loads the tiles for all
    PipelineState<kv_stages> read;

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

    float O[m_tiles][d_head / 8][4] = {};  // [warp_rows, d_head] per warp
    float row_max[m_tiles][2];       // of rows lane / 4 and lane / 4 + 8 of each piece: the maximum of S, not scaled
    float row_sum[m_tiles][2] = {};  // of P, in this lane's columns only
    for (int m = 0; m < m_tiles; ++m) row_max[m][0] = row_max[m][1] = -INFINITY;
    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale_log2 x)

    // This lane's row of the first piece, for ldmatrix. Lanes 0-15 have the left halves of 16 rows, lanes 16-31 the
    // right ones. For K the halves alternate every 8 lanes, so that the two registers of an operand B are neighbours.
    const int Q_row = warp * warp_rows + lane % 16;
    const int K_row = lane % 8 + lane / 16 * 8;
    const uint32_t Q_first = ptx::shared_address(shared.Q + tile_offset<Br>(Q_row, lane / 16));
    const uint32_t K_first = ptx::shared_address(shared.K[0] + tile_offset<Bc>(K_row, lane / 8 % 2));
    const uint32_t V_first = ptx::shared_address(shared.V[0] + tile_offset<Bc>(lane % 16, lane / 16));

    ptx::mbarrier_wait(&shared.Q_full, 0);
    for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
        if (threadIdx.x == 0 && kv_tile > 0) load_kv_tile(shared, write, maps, query_tile, kv_tile - 1);
        __syncwarp();
        ptx::mbarrier_wait(&shared.full[read.stage], read.phase);
        const uint32_t buffer = read.stage * tile_bytes;

        // ---- S = QKᵀ ----
        float S[m_tiles][n_tiles][4] = {};  // [warp_rows, Bc] per warp
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            uint32_t Q_fragment[m_tiles][4], K_fragment[n_tiles][2];
            load_Q_fragment<T, d_head>(Q_fragment, Q_first, k);
            load_K_fragment<T, d_head>(K_fragment, K_first + buffer, k);
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < n_tiles; ++n) ptx::mma_m16n8k16<T>(S[m][n], Q_fragment[m], K_fragment[n]);
        }
        mask(S, query_tile, warp_row, kv_tile, params.Nkv, lane);

        // ---- online softmax ----
        float rescale[m_tiles][2];  // the factor for older sums and for O when the maximum grows
        bool grew = false;
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float new_max = row_max[m][row];
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * row; x < 2 * row + 2; ++x) new_max = fmaxf(new_max, S[m][n][x]);
                new_max = row_reduce_max(new_max);
                const float top = new_max == -INFINITY ? 0.0f : new_max;  // the row may not have seen any key yet
                const float shift = top * scale_log2;
                rescale[m][row] = ptx::exp2((row_max[m][row] - top) * scale_log2);
                grew |= rescale[m][row] != 1.0f;
                row_max[m][row] = new_max;

                float sum = 0.0f;  // of this lane's columns only
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * row; x < 2 * row + 2; ++x) {
                        S[m][n][x] = ptx::exp2(S[m][n][x] * scale_log2 - shift);  // one multiply-add and one ex2
                        sum += S[m][n][x];
                    }
                row_sum[m][row] = row_sum[m][row] * rescale[m][row] + sum;
            }
        if (__any_sync(0xffffffff, grew)) {  // else all of the warp's rows keep their maximum, and O stays as it is
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < d_head / 8; ++n)
#pragma unroll
                    for (int x = 0; x < 4; ++x) O[m][n][x] *= rescale[m][x / 2];
        }

        // Two neighbouring 16x8 pieces of S, rounded to 16 bits, are a 16x16 operand A: P never leaves its lanes.
        uint32_t P[m_tiles][p_steps][4];  // [warp_rows, Bc] per warp
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int k = 0; k < p_steps; ++k)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float *const pair = &S[m][2 * k + i / 2][i % 2 * 2];
                    P[m][k][i] = pack<T>(pair[0], pair[1]);
                }

        // ---- O += PV ----
#pragma unroll
        for (int k = 0; k < p_steps; ++k) {
            uint32_t V_fragment[d_head / 8][2];
            load_V_fragment<T, d_head>(V_fragment, V_first + buffer, k);
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < d_head / 8; ++n) ptx::mma_m16n8k16<T>(O[m][n], P[m][k], V_fragment[n]);
        }

        // ---- release ----
        __syncwarp();  // all lanes have read the buffer before lane 0 arrives for the warp
        if (lane == 0) ptx::mbarrier_arrive(&shared.empty[read.stage]);
        read.advance();
    }

    for (int m = 0; m < m_tiles; ++m)
        for (int row = 0; row < 2; ++row) row_sum[m][row] = row_reduce_sum(row_sum[m][row]);
    store_O<T, d_head>(params, shared.Q + warp * warp_rows * panel, O, row_sum, query_tile, warp_row, lane);
    store_log_sum_exp(params, row_max, row_sum, query_tile, warp_row, lane);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "TMA",
                                  .min_compute = 90,
                                  .Br = Br,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .most_Nq = 65535 * Br};  // where a grid's z ends

static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        return flash::Launch{.kernel = flash_kernel<T, d_head>,
                             .grid = dim3(params.Hq, params.B, (params.Nq + Br - 1) / Br),
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
