// Autotune. One kernel in which every technique of the stages before is a compile-time flag. With a stage's
// flags it is that stage; which flags are best depends on the GPU and the shape, and is measured (`make tune`).
//
// One block of `warps` warps works on Br rows of Q, each warp on Br / warps of them, and walks over K and V in tiles of
// Bc rows. The phases are those of the other stages; `if constexpr` picks their variants, so that what is switched off
// is not in the machine code.

#include "configured.h"
#include "launch.h"
#include "numbers.cuh"
#include "ptx.cuh"

// What flashladder/tuning/configuration.py calls by the same names, with the rules of what goes together.
struct Configuration {
    int Br, Bc, warps;           // rows of Q a block, rows of K and V a tile, warps a block
    bool async;                  // 06: cp.async instead of copies through registers
    bool eager;                  // 07: tiles are requested as soon as their buffer is free
    bool swizzled;               // 05: chunks permuted within their row
    int load_Q, load_K, load_V;  // 08: fragments of 8 elements to load at a time, 2 a step of mma; 0: the whole block
    bool Q_in_registers;         // Q's fragments are loaded once, before the loop
    int kv_stages, fragment_stages;   // 09: buffers for tiles of K and V, and for fragments
    bool fast_softmax, skip_rescale;  // 10: exp2, sums reduced at the end; O rescaled only where a maximum grew
    bool lean, lean_ldmatrix;         // 11: addresses computed once, of copies (and K as register pairs); of ldmatrix
    int resident_blocks;  // a multiprocessor; the compiler has to spare registers for so many. 0: does not care
};

constexpr int chunk = 8;  // elements in 16 bytes: what a thread copies, and a row of an 8x8 matrix

// What follows from a configuration.
template <int d_head, Configuration config>
struct Sizes {
    static constexpr int threads = 32 * config.warps, warp_rows = config.Br / config.warps;
    static constexpr int m_tiles = warp_rows / 16;  // S, P, O: pieces of 16 rows
    static constexpr int n_tiles = config.Bc / 8;   // S: pieces of 8 columns
    static constexpr int k_steps = d_head / 16;     // S = QKᵀ: steps of 16 along d_head
    static constexpr int p_steps = config.Bc / 16;  // O += PV: steps of 16 along the rows of V
    // Columns of S, and of O, that a product goes over at once; steps whose fragments are loaded together; buffers for
    // Q.
    static constexpr int S_columns = config.load_K == 1 ? 2 : n_tiles, O_columns = config.load_V == 1 ? 2 : d_head / 8;
    static constexpr int Q_steps = config.load_Q && !config.Q_in_registers ? config.load_Q / 2 : k_steps;
    static constexpr int K_steps = config.load_K == 1 ? 1 : config.load_K ? config.load_K / 2 : k_steps;
    static constexpr int V_steps = config.load_V == 1 ? 1 : config.load_V ? config.load_V / 2 : p_steps;
    static constexpr int Q_stages = config.Q_in_registers || config.load_K == 1 ? 1 : config.fragment_stages;
    static constexpr int tile_bytes = config.Bc * d_head * 2;
    static constexpr int chunks = d_head / chunk, rows_at_once = threads / chunks;
    static constexpr size_t shared_bytes = (config.Br + config.kv_stages * 2 * config.Bc) * d_head * 2;
};

// Where element 8 * c of row `row` lies in a tile of d_head columns. Swizzled: the chunk's index is XORed with the
// row's, modulo 8, so that 8 rows at the same c lie in 8 different groups of 4 banks.
template <int d_head, Configuration config>
__device__ int tile_offset(int row, int c) {
    return row * d_head + (config.swizzled ? c ^ row % 8 : c) * chunk;
}

// Copies a tile from global to shared memory, or starts to, 16 bytes a thread at a time; neighbouring threads take
// neighbouring chunks. global: [rows, d_head] with stride_row elements from row to row; tile: [rows, d_head].
template <typename T, int d_head, Configuration config, int rows>
__device__ void load_tile(T *tile, const T *global, int64_t stride_row) {
    constexpr int chunks = d_head / chunk, rows_at_once = 32 * config.warps / chunks;
    const int row = threadIdx.x / chunks, c = threadIdx.x % chunks;
#pragma unroll(config.async ? 4 : rows)
    for (int i = 0; i < rows; i += rows_at_once) {
        const T *from = global + (row + i) * stride_row + c * chunk;
        T *to = tile + tile_offset<d_head, config>(row + i, c);
        if constexpr (config.async)
            ptx::cp_async_16(to, from);
        else
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
    }
}

// The same by addresses that were computed before (lean): to, from: where this thread's first chunk goes and comes
// from; step: elements of `from` from one of its rows to its next.
template <typename T, int d_head, Configuration config, int rows>
__device__ void load_tile(uint32_t to, const T *from, int64_t step) {
    constexpr int rows_at_once = 32 * config.warps / (d_head / chunk);
#pragma unroll
    for (int i = 0; i < rows; i += rows_at_once, from += step) ptx::cp_async_16(to + i * d_head * sizeof(T), from);
}

// Where this lane points ldmatrix in the 16x16 piece at (0, 0) of a tile, in elements. pairs: 8 lanes each by turns
// left and right, so that the two registers of an operand B come out as neighbours.
template <int d_head, Configuration config, bool pairs = false>
__device__ int lane_offset() {
    const int lane = threadIdx.x % 32;
    return pairs ? tile_offset<d_head, config>(lane % 8 + lane / 16 * 8, lane / 8 % 2)
                 : tile_offset<d_head, config>(lane % 16, lane / 16);
}

// The address that this lane gives ldmatrix for the piece at (row, 8 * c) of a tile, multiples of 8 and 2.
// lean_ldmatrix: from first, its address for the piece at (0, 0); else from the tile.
template <typename T, int d_head, Configuration config, bool pairs = false>
__device__ uint32_t piece_address(const T *tile, uint32_t first, int row, int c) {
    if (!config.lean_ldmatrix) first = ptx::shared_address(tile + lane_offset<d_head, config, pairs>());
    return (first ^ c * chunk * sizeof(T)) + row * d_head * sizeof(T);
}

// Q as operand A of S = QKᵀ, the warp's rows at step k along d_head.
template <typename T, int d_head, Configuration config, int m_tiles>
__device__ void load_Q_fragment(uint32_t (&Q_fragment)[m_tiles][4], const T *Q_tile, uint32_t first, int k) {
    const T *Q_warp = Q_tile + threadIdx.x / 32 * 16 * m_tiles * d_head;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
        ptx::ldmatrix_x4(Q_fragment[m], piece_address<T, d_head, config>(Q_warp, first, 16 * m, 2 * k));
}

// K as operand B of S = QKᵀ, rows 8 n to 8 (n + columns) - 1 at step k along d_head: rows of K are the columns of Kᵀ.
template <typename T, int d_head, Configuration config, int columns>
__device__ void load_K_fragment(uint32_t (&K_fragment)[columns][2], const T *K_tile, uint32_t first, int k, int n) {
#pragma unroll
    for (int i = 0; i < columns; i += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 8-15 left, rows 0-7 right, rows 8-15 right; lean: 1 and 2 exchanged
        ptx::ldmatrix_x4(piece, piece_address<T, d_head, config, config.lean>(K_tile, first, 8 * (n + i), 2 * k));
        K_fragment[i][0] = piece[0], K_fragment[i][1] = piece[config.lean ? 1 : 2];
        K_fragment[i + 1][0] = piece[config.lean ? 2 : 1], K_fragment[i + 1][1] = piece[3];
    }
}

// V as operand B of O += PV, rows 16 k to 16 k + 15, columns 8 n to 8 (n + columns) - 1: V's rows are what is summed
// over, so transpose on the way.
template <typename T, int d_head, Configuration config, int columns>
__device__ void load_V_fragment(uint32_t (&V_fragment)[columns][2], const T *V_tile, uint32_t first, int k, int n) {
#pragma unroll
    for (int i = 0; i < columns; i += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 8-15 left, rows 0-7 right, rows 8-15 right
        ptx::ldmatrix_x4_trans(piece, piece_address<T, d_head, config>(V_tile, first, 16 * k, n + i));
        V_fragment[i][0] = piece[0], V_fragment[i][1] = piece[1];
        V_fragment[i + 1][0] = piece[2], V_fragment[i + 1][1] = piece[3];
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
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(32 * config.warps, config.resident_blocks) flash_kernel(const FlashParams params) {
    using Size = Sizes<d_head, config>;
    constexpr int Br = config.Br, Bc = config.Bc, kv_stages = config.kv_stages;
    constexpr int m_tiles = Size::m_tiles, n_tiles = Size::n_tiles, warp_rows = Size::warp_rows;
    constexpr int k_steps = Size::k_steps, p_steps = Size::p_steps;

    extern __shared__ __align__(256) unsigned char shared[];
    T *Q_tile = reinterpret_cast<T *>(shared);  // [Br, d_head]; O's way out, too
    T *K_tiles = Q_tile + Br * d_head;          // [kv_stages, Bc, d_head]
    T *V_tiles = K_tiles + kv_stages * Bc * d_head;

    const int64_t batch = blockIdx.z, head = blockIdx.y, first_row = blockIdx.x * Br;
    const T *Q = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch + head * params.Q.stride_head +
                 first_row * params.Q.stride_row;
    const T *K = static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + head * params.K.stride_head;
    const T *V = static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + head * params.V.stride_head;
    T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
                  first_row * params.O.stride_row;

    float O[m_tiles][d_head / 8][4] = {};            // [warp_rows, d_head] per warp
    float row_max[m_tiles][2], row_sum[m_tiles][2];  // rows lane / 4 and lane / 4 + 8 of each piece
    for (int m = 0; m < m_tiles; ++m)
        for (int half = 0; half < 2; ++half) row_max[m][half] = -INFINITY, row_sum[m][half] = 0.0f;
    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    // Addresses for all tiles (lean): this thread's first chunk for cp.async, K and V visited backwards ...
    constexpr int rows_at_once = Size::rows_at_once, tile_bytes = Size::tile_bytes;
    const int row = threadIdx.x / Size::chunks, c = threadIdx.x % Size::chunks, lane = threadIdx.x % 32;
    const uint32_t to = tile_offset<d_head, config>(row, c) * sizeof(T), Q_shared = ptx::shared_address(Q_tile);
    const uint32_t K_shared = Q_shared + Br * d_head * sizeof(T), V_shared = K_shared + kv_stages * tile_bytes;
    const T *K_from = K + (params.Nkv - Bc + row) * params.K.stride_row + c * chunk;
    const T *V_from = V + (params.Nkv - Bc + row) * params.V.stride_row + c * chunk;
    const int64_t K_step = rows_at_once * params.K.stride_row, V_step = rows_at_once * params.V.stride_row;
    // ... and (lean_ldmatrix) this lane's place in the first piece.
    const int warp_offset = threadIdx.x / 32 * warp_rows * d_head;
    const uint32_t Q_first = Q_shared + (warp_offset + lane_offset<d_head, config>()) * sizeof(T);
    const uint32_t K_first = K_shared + lane_offset<d_head, config, config.lean>() * sizeof(T);
    const uint32_t V_first = V_shared + lane_offset<d_head, config>() * sizeof(T);

    // Brings (or requests) tile j of K, and of V, into buffer j % kv_stages; called once for each j, in order.
    const auto load_K = [&](int j) {
        if constexpr (config.lean) {
            if (j > 0) K_from -= Bc * params.K.stride_row;
            load_tile<T, d_head, config, Bc>(K_shared + j % kv_stages * tile_bytes + to, K_from, K_step);
        } else {
            load_tile<T, d_head, config, Bc>(K_tiles + j % kv_stages * Bc * d_head, K + j * Bc * params.K.stride_row,
                                             params.K.stride_row);
        }
    };
    const auto load_V = [&](int j) {
        if constexpr (config.lean) {
            if (j > 0) V_from -= Bc * params.V.stride_row;
            load_tile<T, d_head, config, Bc>(V_shared + j % kv_stages * tile_bytes + to, V_from, V_step);
        } else {
            load_tile<T, d_head, config, Bc>(V_tiles + j % kv_stages * Bc * d_head, V + j * Bc * params.V.stride_row,
                                             params.V.stride_row);
        }
    };

    if constexpr (config.lean)
        load_tile<T, d_head, config, Br>(Q_shared + to, Q + row * params.Q.stride_row + c * chunk,
                                         rows_at_once * params.Q.stride_row);
    else
        load_tile<T, d_head, config, Br>(Q_tile, Q, params.Q.stride_row);
    if (config.eager) load_K(0);
    if (config.eager && kv_stages == 2) load_V(0);
    if (config.eager) ptx::cp_async_commit();

    uint32_t Q_fragment[Size::Q_stages][Size::Q_steps][m_tiles][4];
    const auto load_Q_steps = [&](int load) {  // the load-th group of steps
#pragma unroll
        for (int k = 0; k < Size::Q_steps; ++k)
            load_Q_fragment<T, d_head, config>(Q_fragment[load % Size::Q_stages][k], Q_tile, Q_first,
                                               load * Size::Q_steps + k);
    };
    if constexpr (config.Q_in_registers) {
        if (config.async && !config.eager) ptx::cp_async_commit();
        if (config.async) ptx::cp_async_wait<0>();
        __syncthreads();  // all of Q is there
        load_Q_steps(0);
    }

    const int tiles = params.Nkv / Bc;  // of K and V
    for (int j = 0; j < tiles; ++j) {
        const T *K_tile = K_tiles + j % kv_stages * Bc * d_head, *V_tile = V_tiles + j % kv_stages * Bc * d_head;
        const uint32_t K_now = K_first + j % kv_stages * tile_bytes, V_now = V_first + j % kv_stages * tile_bytes;

        // ---- load ----
        if constexpr (!config.eager) {
            load_K(j), load_V(j);
            if (config.async) ptx::cp_async_commit(), ptx::cp_async_wait<0>();
            __syncthreads();  // the tiles are there, written by all threads
        } else {
            ptx::cp_async_wait<0>();  // what this thread has asked for is there
            __syncthreads();  // and so are the others' parts; and everyone is done with the buffers asked for below
            if (kv_stages == 1)
                load_V(j);
            else if (j + 1 < tiles)
                load_K(j + 1), load_V(j + 1);
            ptx::cp_async_commit();
        }

        // ---- S = QKᵀ ----
        float S[m_tiles][n_tiles][4] = {};                 // [warp_rows, Bc] per warp
        constexpr int ahead = config.fragment_stages - 1;  // loads ahead of the products: 0 or 1
        constexpr int S_columns = Size::S_columns, S_parts = n_tiles / S_columns;  // of a step
        uint32_t K_fragment[config.fragment_stages][Size::K_steps][S_columns][2];
        const auto load_K_parts = [&](int load) {
#pragma unroll
            for (int i = 0; i < Size::K_steps; ++i) {
                const int part = load * Size::K_steps + i;
                load_K_fragment<T, d_head, config>(K_fragment[load % config.fragment_stages][i], K_tile, K_now,
                                                   part / S_parts, part % S_parts * S_columns);
            }
        };
        if (ahead && Size::Q_stages == 2) load_Q_steps(0);
        if (ahead) load_K_parts(0);
#pragma unroll
        for (int part = 0; part < k_steps * S_parts; ++part) {
            const int k = part / S_parts, first_n = part % S_parts * S_columns;
            constexpr int Q_ahead = Size::Q_stages - 1;
            if (!config.Q_in_registers && first_n == 0 && k % Size::Q_steps == 0 &&
                k + Q_ahead * Size::Q_steps < k_steps)
                load_Q_steps(k / Size::Q_steps + Q_ahead);
            if (part % Size::K_steps == 0 && part + ahead * Size::K_steps < k_steps * S_parts)
                load_K_parts(part / Size::K_steps + ahead);
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < S_columns; ++n)
                    ptx::mma_m16n8k16<T>(
                        S[m][first_n + n], Q_fragment[k / Size::Q_steps % Size::Q_stages][k % Size::Q_steps][m],
                        K_fragment[part / Size::K_steps % config.fragment_stages][part % Size::K_steps][n]);
        }
        if constexpr (config.eager && kv_stages == 1) {
            __syncthreads();  // everyone is done with K: its buffer is free for the next tile
            if (j + 1 < tiles) load_K(j + 1);
            ptx::cp_async_commit();  // an empty batch after the last tile, so that the count below holds
        }

        // ---- online softmax ----
        float rescale[m_tiles][2];  // what older sums and outputs shrink by when the maximum grows
        bool grew = false;
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float new_max = row_max[m][half];  // fast: of S before it is scaled
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * half; x < 2 * half + 2; ++x) {
                        if (!config.fast_softmax) S[m][n][x] *= params.scale;
                        new_max = fmaxf(new_max, S[m][n][x]);
                    }
                new_max = row_reduce_max(new_max);
                const float shift = config.fast_softmax ? new_max * scale_log2 : new_max;
                rescale[m][half] = config.fast_softmax ? ptx::exp2((row_max[m][half] - new_max) * scale_log2)
                                                       : __expf(row_max[m][half] - new_max);
                row_max[m][half] = new_max;
                grew |= rescale[m][half] != 1.0f;

                float sum = 0.0f;  // fast: of this lane's elements alone
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 2 * half; x < 2 * half + 2; ++x) {
                        S[m][n][x] = config.fast_softmax ? ptx::exp2(S[m][n][x] * scale_log2 - shift)
                                                         : __expf(S[m][n][x] - shift);
                        sum += S[m][n][x];
                    }
                if (!config.fast_softmax) sum = row_reduce_sum(sum);
                row_sum[m][half] = row_sum[m][half] * rescale[m][half] + sum;
            }
        if (!config.skip_rescale || __any_sync(0xffffffff, grew)) {  // else all of the warp's rows keep their maximum
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
        if constexpr (config.eager && kv_stages == 1) {
            ptx::cp_async_wait<1>();  // all but the newest batch, which is the next K: this thread's part of V is there
            __syncthreads();          // and so are the others' parts
        }
        constexpr int O_columns = Size::O_columns, O_parts = d_head / 8 / O_columns;
        uint32_t V_fragment[config.fragment_stages][Size::V_steps][O_columns][2];
        const auto load_V_parts = [&](int load) {
#pragma unroll
            for (int i = 0; i < Size::V_steps; ++i) {
                const int part = load * Size::V_steps + i;
                load_V_fragment<T, d_head, config>(V_fragment[load % config.fragment_stages][i], V_tile, V_now,
                                                   part / O_parts, part % O_parts * O_columns);
            }
        };
        if (ahead) load_V_parts(0);
#pragma unroll
        for (int part = 0; part < p_steps * O_parts; ++part) {
            const int k = part / O_parts, first_n = part % O_parts * O_columns;
            if (part % Size::V_steps == 0 && part + ahead * Size::V_steps < p_steps * O_parts)
                load_V_parts(part / Size::V_steps + ahead);
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < O_columns; ++n)
                    ptx::mma_m16n8k16<T>(
                        O[m][first_n + n], P[m][k],
                        V_fragment[part / Size::V_steps % config.fragment_stages][part % Size::V_steps][n]);
        }
        if (!config.eager) __syncthreads();  // everyone is done with the tiles before they are overwritten
    }

    // ---- store ----
    // Through the warp's own rows of Q_tile, which nobody else reads, so that rows leave in pieces of 16 bytes.
    T *O_tile = Q_tile + threadIdx.x / 32 * warp_rows * d_head;  // [warp_rows, d_head]
    __syncwarp();                                                // no lane of the warp reads its rows of Q any more
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float inverse = 1.0f / (config.fast_softmax ? row_reduce_sum(row_sum[m][half]) : row_sum[m][half]);
            const int row = 16 * m + 8 * half + lane / 4;
#pragma unroll
            for (int n = 0; n < d_head / 8; ++n)
                *reinterpret_cast<uint32_t *>(O_tile + tile_offset<d_head, config>(row, n) + lane % 4 * 2) =
                    pack<T>(O[m][n][2 * half] * inverse, O[m][n][2 * half + 1] * inverse);
        }
    __syncwarp();  // the warp's rows are complete
#pragma unroll
    for (int i = 0; i < warp_rows * Size::chunks; i += 32) {
        const int row = (i + lane) / Size::chunks, c = (i + lane) % Size::chunks;
        T *to = O_global + (threadIdx.x / 32 * warp_rows + row) * params.O.stride_row + c * chunk;
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(O_tile + tile_offset<d_head, config>(row, c));
    }
}

// ---- launch ----

// instances.h has a line INSTANCE(T, d_head, "short form", fields of Configuration ...) for each instance to build, and
// a line CHOICE(...), the fields of flash::Choice, for what was the fastest where.
template <typename T, int d_head, Configuration config>
static flash::Instance instance(const char *short_form) {
    using Size = Sizes<d_head, config>;
    constexpr FlashDtype dtype = std::is_same_v<T, __half> ? FLASH_FP16 : FLASH_BF16;
    flash::Kernel kernel = nullptr;
    if constexpr (flash::built<T, d_head>) kernel = flash_kernel<T, d_head, config>;
    return {short_form, dtype, d_head, kernel, config.Br, config.Bc, Size::threads, Size::shared_bytes};
}

static const std::vector<flash::Instance> instances = {
#define INSTANCE(T, d_head, short_form, ...) instance<T, d_head, Configuration{__VA_ARGS__}>(short_form),
#define CHOICE(...)
#include "instances.h"
#undef INSTANCE
#undef CHOICE
};
static const std::vector<flash::Choice> choices = {
#define INSTANCE(...)
#define CHOICE(...) {__VA_ARGS__},
#include "instances.h"
};

static FlashStatus plan(const FlashParams *params, flash::Limits &limits, flash::Launch &launch) {
    limits = {.title = "Autotune", .min_compute = 80, .positive_scale = true};
    const flash::Instance *one = nullptr;
    const FlashStatus status = flash::choose_instance(params, instances, choices, limits, one);
    if (status == FLASH_OK)
        launch = {one->kernel, dim3(params->Nq / one->Br, params->Hq, params->B), one->threads, one->shared_bytes};
    return status;
}

extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    flash::Limits limits;
    flash::Launch launch;
    FlashStatus status = plan(params, limits, launch);
    if (status == FLASH_OK) status = flash::check(params, limits);
    return status == FLASH_OK ? flash::launch(launch, *params, stream) : status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    flash::Limits limits;
    flash::Launch launch;
    FlashStatus status = plan(params, limits, launch);
    if (status == FLASH_OK) status = flash::check_sizes(params, limits);
    return status == FLASH_OK ? flash::describe(limits, launch, 0, description) : status;
}
