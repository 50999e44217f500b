// Lean addressing. Addresses are computed once; in the loop they move by constants. K comes as register pairs
// out of ldmatrix. K and V are visited backwards.
//
// One block of 4 warps works on Br = 128 rows of Q, each warp on 32 of them, and walks over K and V in tiles of
// Bc = 64 rows. Tiles lie in shared memory as rows of 16-bit elements; ldmatrix brings 16x16 pieces of them
// into registers in the layout that mma wants ("fragments", drawn in the README of stage tensor_cores).

#include "launch.h"
#include "numbers.cuh"
#include "ptx.cuh"

constexpr int Br = 128;  // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 64;   // rows of K and V in a tile
constexpr int warps = 4, threads = 32 * warps;
constexpr int warp_rows = Br / warps;  // rows of Q that a warp works on
constexpr int kv_stages = 2;           // buffers for tiles of K and of V
constexpr int fragment_stages = 1;     // buffers for fragments of Q, K and V: 1 or 2 (double_buffering compares them)
constexpr int chunk = 8;               // elements in 16 bytes: what a thread copies, and a row of an 8x8 matrix

// What a warp computes, in pieces of mma.m16n8k16:
constexpr int m_tiles = warp_rows / 16;  // S, P, O: pieces of 16 rows
constexpr int n_tiles = Bc / 8;          // S: pieces of 8 columns
constexpr int p_steps = Bc / 16;         // O += PV: steps of 16 along the rows of V
// ... and d_head / 16 steps along d_head for S = QKᵀ, d_head / 8 pieces of 8 columns for O.

// Where element 8 * c of row `row` lies in a tile of d_head columns: the chunk's index is XORed with the row's, modulo
// 8, so that 8 rows at the same c lie in 8 different groups of 4 banks.
template <int d_head>
__device__ int tile_offset(int row, int c) {
    return row * d_head + (c ^ row % 8) * chunk;
}

// Starts copying a tile from global to shared memory, 16 bytes a thread at a time; neighbouring threads take
// neighbouring chunks. to, from: where this thread's first chunk goes and comes from; step: elements of `from` from one
// of its rows to its next. Its rows are a multiple of 8 apart, so their swizzle is the same.
template <typename T, int d_head, int rows>
__device__ void load_tile(uint32_t to, const T *from, int64_t step) {
    constexpr int rows_at_once = threads / (d_head / chunk);
    static_assert(rows_at_once % 8 == 0);
#pragma unroll
    for (int i = 0; i < rows; i += rows_at_once, from += step) ptx::cp_async_16(to + i * d_head * sizeof(T), from);
}

// An address of tile_offset's that is `rows` further down (a multiple of 8) and c chunks (a multiple of 2) to the
// right: constants both, for the compiler has unrolled the loops.
template <typename T, int d_head>
__device__ uint32_t piece_address(uint32_t first, int rows, int c) {
    return (first ^ c * chunk * sizeof(T)) + rows * d_head * sizeof(T);
}

// Q as operand A of S = QKᵀ, the warp's 32 rows at step k along d_head. first: the address that this lane gives
// ldmatrix for the piece at k = 0.
template <typename T, int d_head>
__device__ void load_Q_fragment(uint32_t (&Q_fragment)[m_tiles][4], uint32_t first, int k) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) ptx::ldmatrix_x4(Q_fragment[m], piece_address<T, d_head>(first, 16 * m, 2 * k));
}

// K as operand B of S = QKᵀ, all Bc rows at step k along d_head: rows of K are the columns of Kᵀ.
template <typename T, int d_head>
__device__ void load_K_fragment(uint32_t (&K_fragment)[n_tiles][2], uint32_t first, int k) {
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 0-7 right, rows 8-15 left, rows 8-15 right
        ptx::ldmatrix_x4(piece, piece_address<T, d_head>(first, 8 * n, 2 * k));
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
        ptx::ldmatrix_x4_trans(piece, piece_address<T, d_head>(first, 16 * k, n));
        V_fragment[n][0] = piece[0], V_fragment[n][1] = piece[1];
        V_fragment[n + 1][0] = piece[2], V_fragment[n + 1][1] = piece[3];
    }
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

// grid: (Nq / Br, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) flash_kernel(const FlashParams params) {
    extern __shared__ __align__(256) unsigned char shared[];
    T *Q_tile = reinterpret_cast<T *>(shared);  // [Br, d_head]; O's way out, too
    // After it: K's buffers, [kv_stages, Bc, d_head], and V's.

    const int64_t batch = blockIdx.z, head = blockIdx.y, first_row = blockIdx.x * Br;
    const T *Q = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch + head * params.Q.stride_head +
                 first_row * params.Q.stride_row;
    const T *K = static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + head * params.K.stride_head;
    const T *V = static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + head * params.V.stride_head;
    T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
                  first_row * params.O.stride_row;

    float O[m_tiles][d_head / 8][4] = {};  // [warp_rows, d_head] per warp
    // Rows lane / 4 and lane / 4 + 8 of each piece: the maximum of S, not scaled; of the sum of P this lane's part.
    float row_max[m_tiles][2], row_sum[m_tiles][2];
    for (int m = 0; m < m_tiles; ++m)
        for (int half = 0; half < 2; ++half) row_max[m][half] = -INFINITY, row_sum[m][half] = 0.0f;

    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    // Addresses, once for all tiles. For cp.async: this thread's first chunk. K and V are visited backwards, ...
    constexpr int chunks = d_head / chunk, rows_at_once = threads / chunks, tile_bytes = Bc * d_head * sizeof(T);
    const int row = threadIdx.x / chunks, c = threadIdx.x % chunks, lane = threadIdx.x % 32;
    const T *K_from = K + (params.Nkv - Bc + row) * params.K.stride_row + c * chunk;
    const T *V_from = V + (params.Nkv - Bc + row) * params.V.stride_row + c * chunk;
    const int64_t K_step = rows_at_once * params.K.stride_row, V_step = rows_at_once * params.V.stride_row;
    const uint32_t to = tile_offset<d_head>(row, c) * sizeof(T), Q_shared = ptx::shared_address(Q_tile);
    const uint32_t K_shared = Q_shared + Br * d_head * sizeof(T), V_shared = K_shared + kv_stages * tile_bytes;
    // ... and for ldmatrix: this lane's row of the first piece. Lanes 0-15 have the left halves of 16 rows, lanes 16-31
    // the right ones; of K 8 lanes each by turns, so that the two registers of an operand B come out as neighbours.
    const int Q_row = threadIdx.x / 32 * warp_rows + lane % 16;
    const uint32_t Q_first = Q_shared + tile_offset<d_head>(Q_row, lane / 16) * sizeof(T);
    const uint32_t K_first = K_shared + tile_offset<d_head>(lane % 8 + lane / 16 * 8, lane / 8 % 2) * sizeof(T);
    const uint32_t V_first = V_shared + tile_offset<d_head>(lane % 16, lane / 16) * sizeof(T);

    const T *Q_from = Q + row * params.Q.stride_row + c * chunk;
    load_tile<T, d_head, Br>(Q_shared + to, Q_from, rows_at_once * params.Q.stride_row);
    load_tile<T, d_head, Bc>(K_shared + to, K_from, K_step);
    load_tile<T, d_head, Bc>(V_shared + to, V_from, V_step);
    ptx::cp_async_commit();

    const int tiles = params.Nkv / Bc;  // of K and V
    for (int j = 0; j < tiles; ++j) {
        const uint32_t now = j % kv_stages * tile_bytes, next = (j + 1) % kv_stages * tile_bytes;

        // ---- load ----
        ptx::cp_async_wait<0>();  // what this thread has asked for, in the iteration before, is there
        __syncthreads();          // and so are the others' parts; and everyone is done with that iteration's buffers
        if (j + 1 < tiles) {
            K_from -= Bc * params.K.stride_row, V_from -= Bc * params.V.stride_row;
            load_tile<T, d_head, Bc>(K_shared + next + to, K_from, K_step);
            load_tile<T, d_head, Bc>(V_shared + next + to, V_from, V_step);
        }
        ptx::cp_async_commit();

        // ---- S = QKᵀ ----
        float S[m_tiles][n_tiles][4] = {};  // [warp_rows, Bc] per warp
        uint32_t Q_fragment[fragment_stages][m_tiles][4], K_fragment[fragment_stages][n_tiles][2];
#pragma unroll
        for (int k = 1 - fragment_stages; k < d_head / 16; ++k) {
            const int ahead = k + fragment_stages - 1;  // the step that is loaded while step k is multiplied
            if (ahead < d_head / 16) {
                load_Q_fragment<T, d_head>(Q_fragment[ahead % fragment_stages], Q_first, ahead);
                load_K_fragment<T, d_head>(K_fragment[ahead % fragment_stages], K_first + now, ahead);
            }
            if (k < 0) continue;
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
                    ptx::mma_m16n8k16<T>(S[m][n], Q_fragment[k % fragment_stages][m],
                                         K_fragment[k % fragment_stages][n]);
        }

        // ---- online softmax ----
        float rescale[m_tiles][2];  // what older sums and outputs shrink by when the maximum grows
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float new_max = row_max[m][half];
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * half; x < 2 * half + 2; ++x) new_max = fmaxf(new_max, S[m][n][x]);
                new_max = row_reduce_max(new_max);
                rescale[m][half] = ptx::exp2((row_max[m][half] - new_max) * scale_log2);  // 0 on the first tile
                row_max[m][half] = new_max;

                float sum = 0.0f;  // of this lane's elements alone
                const float shift = new_max * scale_log2;
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * half; x < 2 * half + 2; ++x) {
                        S[m][n][x] = ptx::exp2(S[m][n][x] * scale_log2 - shift);  // one multiply-add, one ex2
                        sum += S[m][n][x];
                    }
                row_sum[m][half] = row_sum[m][half] * rescale[m][half] + sum;
            }
        bool grew = false;
#pragma unroll
        for (int m = 0; m < m_tiles; ++m) grew |= rescale[m][0] != 1.0f || rescale[m][1] != 1.0f;
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
                    const float *pair = &S[m][2 * k + i / 2][i % 2 * 2];
                    P[m][k][i] = pack<T>(pair[0], pair[1]);
                }

        // ---- O += PV ----
        uint32_t V_fragment[fragment_stages][d_head / 8][2];
#pragma unroll
        for (int k = 1 - fragment_stages; k < p_steps; ++k) {
            const int ahead = k + fragment_stages - 1;
            if (ahead < p_steps) load_V_fragment<T, d_head>(V_fragment[ahead % fragment_stages], V_first + now, ahead);
            if (k < 0) continue;
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < d_head / 8; ++n)
                    ptx::mma_m16n8k16<T>(O[m][n], P[m][k], V_fragment[k % fragment_stages][n]);
        }
    }

    // ---- store ----
    // Through the warp's own rows of Q_tile, which nobody else reads, so that rows leave in pieces of 16 bytes.
    T *O_tile = Q_tile + threadIdx.x / 32 * warp_rows * d_head;  // [warp_rows, d_head]
    __syncwarp();                                                // no lane of the warp reads its rows of Q any more
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float inverse = 1.0f / row_reduce_sum(row_sum[m][half]);
            const int row = 16 * m + 8 * half + lane / 4;
#pragma unroll
            for (int n = 0; n < d_head / 8; ++n)
                *reinterpret_cast<uint32_t *>(O_tile + tile_offset<d_head>(row, n) + lane % 4 * 2) =
                    pack<T>(O[m][n][2 * half] * inverse, O[m][n][2 * half + 1] * inverse);
        }
    __syncwarp();  // the warp's rows are complete
#pragma unroll
    for (int i = 0; i < warp_rows * chunks; i += 32) {
        const int row = (i + lane) / chunks, c = (i + lane) % chunks;
        T *to = O_global + (threadIdx.x / 32 * warp_rows + row) * params.O.stride_row + c * chunk;
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(O_tile + tile_offset<d_head>(row, c));
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Lean addressing",
                                  .min_compute = 80,
                                  .Br = Br,
                                  .Bc = Bc,
                                  .multiple_Nq = Br,
                                  .multiple_Nkv = Bc,
                                  .positive_scale = true};

static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        const size_t shared_bytes = (Br + kv_stages * 2 * Bc) * d_head * sizeof(T);
        return flash::Launch{flash_kernel<T, d_head>, dim3(params.Nq / Br, params.Hq, params.B), threads, shared_bytes};
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
