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
    // Q's.
    static constexpr int S_columns = config.load_K == 1 ? 2 : n_tiles, O_columns = config.load_V == 1 ? 2 : d_head / 8;
    static constexpr int Q_steps = config.load_Q && !config.Q_in_registers ? config.load_Q / 2 : k_steps;
    static constexpr int K_steps = config.load_K == 1 ? 1 : config.load_K ? config.load_K / 2 : k_steps;
    static constexpr int V_steps = config.load_V == 1 ? 1 : config.load_V ? config.load_V / 2 : p_steps;
    static constexpr int Q_stages = config.Q_in_registers || config.load_K == 1 ? 1 : config.fragment_stages;
    static constexpr int tile_bytes = config.Bc * d_head * 2;
    static constexpr int chunks = d_head / chunk, rows_at_once = threads / chunks;
    static constexpr size_t shared_bytes = (config.Br + config.kv_stages * 2 * config.Bc) * d_head * 2;
};

// ---- load ----

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

// Q, K or V of one head, as a thread copies it in tiles of `rows` rows.
template <typename T, int d_head, Configuration config, int rows>
struct Tiles {
    T *buffers;          // [rows, d_head] of Q, [kv_stages, rows, d_head] of K and V
    const T *global;     // [Nq, d_head] or [Nkv, d_head]
    int64_t stride_row;  // elements of global from row to row
    // lean: this thread's first chunk of the tile that is loaded next, where it goes in the first buffer, and the
    // elements from one of the thread's rows to its next.
    const T *from;
    uint32_t to;
    int64_t step;

    // first_row: of the tile that lean loads first.
    __device__ Tiles(T *buffers, const T *global, int64_t stride_row, int first_row)
        : buffers(buffers), global(global), stride_row(stride_row) {
        using Size = Sizes<d_head, config>;
        const int row = threadIdx.x / Size::chunks, c = threadIdx.x % Size::chunks;
        from = global + (first_row + row) * stride_row + c * chunk;
        to = ptx::shared_address(buffers) + tile_offset<d_head, config>(row, c) * sizeof(T);
        step = Size::rows_at_once * stride_row;
    }
};

// Loads (or requests) tile j into buffer j % kv_stages; called once for each j, in order. lean counts K's and V's tiles
// from the last one.
template <typename T, int d_head, Configuration config, int rows>
__device__ __forceinline__ void load_tile(Tiles<T, d_head, config, rows> &tiles, int j) {
    const int buffer = j % config.kv_stages;
    if constexpr (config.lean) {
        if (j > 0) tiles.from -= rows * tiles.stride_row;
        load_tile<T, d_head, config, rows>(tiles.to + buffer * Sizes<d_head, config>::tile_bytes, tiles.from,
                                           tiles.step);
    } else {
        load_tile<T, d_head, config, rows>(tiles.buffers + buffer * rows * d_head,
                                           tiles.global + j * rows * tiles.stride_row, tiles.stride_row);
    }
}

// Loads (or requests) both tiles of iteration j.
template <typename T, int d_head, Configuration config, int Bc>
__device__ __forceinline__ void load_kv_tiles(Tiles<T, d_head, config, Bc> &K, Tiles<T, d_head, config, Bc> &V, int j) {
    load_tile(K, j);
    load_tile(V, j);
}

// Waits for the tiles with which iteration j begins; eager with one buffer: for K only. eager: requests the next ones.
template <typename T, int d_head, Configuration config, int Bc>
__device__ __forceinline__ void wait_kv_tiles(Tiles<T, d_head, config, Bc> &K, Tiles<T, d_head, config, Bc> &V, int j,
                                              int kv_tiles) {
    if constexpr (!config.eager) {
        load_kv_tiles(K, V, j);
        if (config.async) ptx::cp_async_commit();
        if (config.async) ptx::cp_async_wait<0>();
        __syncthreads();  // the tiles are there, written by all threads
    } else {
        ptx::cp_async_wait<0>();  // what this thread has asked for is there
        __syncthreads();          // and so are the others' parts; and everyone is done with the buffers asked for below
        if (config.kv_stages == 1)
            load_tile(V, j);
        else if (j + 1 < kv_tiles)
            load_kv_tiles(K, V, j + 1);
        ptx::cp_async_commit();
    }
}

// ---- fragments ----

// Where this lane points ldmatrix in the 16x16 piece at (0, 0) of a tile, in elements. pairs: 8 lanes each by turns
// left and right, so that the two registers of an operand B come out as neighbours.
template <int d_head, Configuration config, bool pairs = false>
__device__ int lane_offset() {
    const int lane = threadIdx.x % 32;
    return pairs ? tile_offset<d_head, config>(lane % 8 + lane / 16 * 8, lane / 8 % 2)
                 : tile_offset<d_head, config>(lane % 16, lane / 16);
}

// A tile that ldmatrix reads. first: the address that this lane gives for its piece at (0, 0), for lean_ldmatrix.
template <typename T, int d_head, Configuration config>
struct Operand {
    const T *tile;
    uint32_t first;
};

// The address that this lane gives ldmatrix for the piece at (row, 8 * c) of a tile, multiples of 8 and 2.
template <bool pairs = false, typename T, int d_head, Configuration config>
__device__ uint32_t piece_address(Operand<T, d_head, config> operand, int row, int c) {
    uint32_t first = operand.first;
    if (!config.lean_ldmatrix) first = ptx::shared_address(operand.tile + lane_offset<d_head, config, pairs>());
    return (first ^ c * chunk * sizeof(T)) + row * d_head * sizeof(T);
}

// Q as operand A of S = QKᵀ, the warp's rows at step k along d_head.
template <typename T, int d_head, Configuration config, int m_tiles>
__device__ void load_Q_fragment(uint32_t (&Q_fragment)[m_tiles][4], Operand<T, d_head, config> Q, int k) {
    Q.tile += threadIdx.x / 32 * 16 * m_tiles * d_head;  // Q.first is of the warp's rows already
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) ptx::ldmatrix_x4(Q_fragment[m], piece_address(Q, 16 * m, 2 * k));
}

// K as operand B of S = QKᵀ, rows 8 n to 8 (n + columns) - 1 at step k along d_head: rows of K are the columns of Kᵀ.
template <typename T, int d_head, Configuration config, int columns>
__device__ void load_K_fragment(uint32_t (&K_fragment)[columns][2], Operand<T, d_head, config> K, int k, int n) {
#pragma unroll
    for (int i = 0; i < columns; i += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 8-15 left, rows 0-7 right, rows 8-15 right; lean: 1 and 2 exchanged
        ptx::ldmatrix_x4(piece, piece_address<config.lean>(K, 8 * (n + i), 2 * k));
        K_fragment[i][0] = piece[0], K_fragment[i][1] = piece[config.lean ? 1 : 2];
        K_fragment[i + 1][0] = piece[config.lean ? 2 : 1], K_fragment[i + 1][1] = piece[3];
    }
}

// V as operand B of O += PV, rows 16 k to 16 k + 15, columns 8 n to 8 (n + columns) - 1: V's rows are what is summed
// over, so transpose on the way.
template <typename T, int d_head, Configuration config, int columns>
__device__ void load_V_fragment(uint32_t (&V_fragment)[columns][2], Operand<T, d_head, config> V, int k, int n) {
#pragma unroll
    for (int i = 0; i < columns; i += 2) {
        uint32_t piece[4];  // rows 0-7 left, rows 8-15 left, rows 0-7 right, rows 8-15 right
        ptx::ldmatrix_x4_trans(piece, piece_address(V, 16 * k, n + i));
        V_fragment[i][0] = piece[0], V_fragment[i][1] = piece[1];
        V_fragment[i + 1][0] = piece[2], V_fragment[i + 1][1] = piece[3];
    }
}

// The steps of Q that are loaded together: the load-th group of them.
template <typename T, int d_head, Configuration config, int stages, int steps, int m_tiles>
__device__ __forceinline__ void load_Q_steps(uint32_t (&Q_fragment)[stages][steps][m_tiles][4],
                                             Operand<T, d_head, config> Q, int load) {
#pragma unroll
    for (int k = 0; k < steps; ++k) load_Q_fragment(Q_fragment[load % stages][k], Q, load * steps + k);
}

// ---- S = QKᵀ ----

// The parts of K that are loaded together: the load-th group of them. A part is a step, or some of a step's columns.
template <typename T, int d_head, Configuration config, int stages, int steps, int columns>
__device__ __forceinline__ void load_K_parts(uint32_t (&K_fragment)[stages][steps][columns][2],
                                             Operand<T, d_head, config> K, int load) {
    constexpr int parts = config.Bc / 8 / columns;  // of a step
#pragma unroll
    for (int i = 0; i < steps; ++i) {
        const int part = load * steps + i;
        load_K_fragment(K_fragment[load % stages][i], K, part / parts, part % parts * columns);
    }
}

template <typename T, int d_head, Configuration config, int n_tiles, int Q_stages, int Q_steps, int m_tiles>
__device__ __forceinline__ void multiply_QK(float (&S)[m_tiles][n_tiles][4],
                                            uint32_t (&Q_fragment)[Q_stages][Q_steps][m_tiles][4],
                                            Operand<T, d_head, config> Q, Operand<T, d_head, config> K) {
    using Size = Sizes<d_head, config>;
    constexpr int stages = config.fragment_stages, ahead = stages - 1;  // loads ahead of the products: 0 or 1
    constexpr int K_steps = Size::K_steps, columns = Size::S_columns, parts = n_tiles / columns;  // of a step
    constexpr int Q_ahead = Q_stages - 1, all = Size::k_steps * parts;
    uint32_t K_fragment[stages][K_steps][columns][2];
    if (Q_ahead) load_Q_steps(Q_fragment, Q, 0);
    if (ahead) load_K_parts(K_fragment, K, 0);
#pragma unroll
    for (int part = 0; part < all; ++part) {
        const int k = part / parts, first_n = part % parts * columns;
        const bool Q_due = !config.Q_in_registers && first_n == 0 && k % Q_steps == 0;
        if (Q_due && k + Q_ahead * Q_steps < Size::k_steps) load_Q_steps(Q_fragment, Q, k / Q_steps + Q_ahead);
        if (part % K_steps == 0 && part + ahead * K_steps < all) load_K_parts(K_fragment, K, part / K_steps + ahead);
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int n = 0; n < columns; ++n)
                ptx::mma_m16n8k16<T>(S[m][first_n + n], Q_fragment[k / Q_steps % Q_stages][k % Q_steps][m],
                                     K_fragment[part / K_steps % stages][part % K_steps][n]);
    }
}

// ---- online softmax ----

// The largest (the sum) of x over the four lanes that hold one row of S.
__device__ float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Turns S into P, and brings the rows' maxima and sums up to date. rescale: what older sums and outputs shrink by.
template <Configuration config, int m_tiles, int n_tiles>
__device__ __forceinline__ void softmax_step(float (&S)[m_tiles][n_tiles][4], float (&row_max)[m_tiles][2],
                                             float (&row_sum)[m_tiles][2], float (&rescale)[m_tiles][2], float scale) {
    const float scale_log2 = scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float new_max = row_max[m][row];  // fast: of S before it is scaled
#pragma unroll
            for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                for (int x = 2 * row; x < 2 * row + 2; ++x) {
                    if (!config.fast_softmax) S[m][n][x] *= scale;
                    new_max = fmaxf(new_max, S[m][n][x]);
                }
            new_max = row_reduce_max(new_max);
            const float shift = config.fast_softmax ? new_max * scale_log2 : new_max;
            rescale[m][row] = config.fast_softmax ? ptx::exp2((row_max[m][row] - new_max) * scale_log2)
                                                  : __expf(row_max[m][row] - new_max);
            row_max[m][row] = new_max;

            float sum = 0.0f;  // fast: of this lane's elements alone
#pragma unroll
            for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                for (int x = 2 * row; x < 2 * row + 2; ++x) {
                    S[m][n][x] =
                        config.fast_softmax ? ptx::exp2(S[m][n][x] * scale_log2 - shift) : __expf(S[m][n][x] - shift);
                    sum += S[m][n][x];
                }
            if (!config.fast_softmax) sum = row_reduce_sum(sum);
            row_sum[m][row] = row_sum[m][row] * rescale[m][row] + sum;
        }
}

// Multiplies O by rescale: always, or (skip_rescale) only if the maximum of some row of the warp grew.
template <Configuration config, int m_tiles, int d_tiles>
__device__ __forceinline__ void rescale_O(float (&O)[m_tiles][d_tiles][4], const float (&rescale)[m_tiles][2]) {
    bool grew = false;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) grew |= rescale[m][row] != 1.0f;
    if (!config.skip_rescale || __any_sync(0xffffffff, grew)) {  // else all of the warp's rows keep their maximum
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int n = 0; n < d_tiles; ++n)
#pragma unroll
                for (int x = 0; x < 4; ++x) O[m][n][x] *= rescale[m][x / 2];
    }
}

// Two neighbouring 16x8 pieces of S, rounded to 16 bits, are a 16x16 operand A: P never leaves its lanes.
template <typename T, int m_tiles, int n_tiles, int p_steps>
__device__ __forceinline__ void round_P(uint32_t (&P)[m_tiles][p_steps][4], const float (&S)[m_tiles][n_tiles][4]) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int k = 0; k < p_steps; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float *pair = &S[m][2 * k + i / 2][i % 2 * 2];
                P[m][k][i] = pack<T>(pair[0], pair[1]);
            }
}

// ---- O += PV ----

// The parts of V that are loaded together: the load-th group of them.
template <typename T, int d_head, Configuration config, int stages, int steps, int columns>
__device__ __forceinline__ void load_V_parts(uint32_t (&V_fragment)[stages][steps][columns][2],
                                             Operand<T, d_head, config> V, int load) {
    constexpr int parts = d_head / 8 / columns;  // of a step
#pragma unroll
    for (int i = 0; i < steps; ++i) {
        const int part = load * steps + i;
        load_V_fragment(V_fragment[load % stages][i], V, part / parts, part % parts * columns);
    }
}

template <typename T, int d_head, Configuration config, int m_tiles, int d_tiles, int p_steps>
__device__ __forceinline__ void multiply_PV(float (&O)[m_tiles][d_tiles][4], const uint32_t (&P)[m_tiles][p_steps][4],
                                            Operand<T, d_head, config> V) {
    using Size = Sizes<d_head, config>;
    constexpr int stages = config.fragment_stages, ahead = stages - 1;
    constexpr int V_steps = Size::V_steps, columns = Size::O_columns, parts = d_tiles / columns, all = p_steps * parts;
    uint32_t V_fragment[stages][V_steps][columns][2];
    if (ahead) load_V_parts(V_fragment, V, 0);
#pragma unroll
    for (int part = 0; part < all; ++part) {
        if (part % V_steps == 0 && part + ahead * V_steps < all) load_V_parts(V_fragment, V, part / V_steps + ahead);
#pragma unroll
        for (int m = 0; m < m_tiles; ++m)
#pragma unroll
            for (int n = 0; n < columns; ++n)
                ptx::mma_m16n8k16<T>(O[m][part % parts * columns + n], P[m][part / parts],
                                     V_fragment[part / V_steps % stages][part % V_steps][n]);
    }
}

// ---- store ----

// Divides the warp's rows of O by their sums and stores them through its own rows of Q, which nobody else reads, so
// that rows leave in pieces of 16 bytes. O_tile: [warp_rows, d_head]; global: the warp's first row.
template <typename T, int d_head, Configuration config, int m_tiles>
__device__ __forceinline__ void store_O(T *global, int64_t stride_row, T *O_tile,
                                        const float (&O)[m_tiles][d_head / 8][4], const float (&row_sum)[m_tiles][2]) {
    constexpr int chunks = d_head / chunk;
    const int lane = threadIdx.x % 32;
    __syncwarp();  // no lane of the warp reads its rows of Q any more
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float inverse = 1.0f / (config.fast_softmax ? row_reduce_sum(row_sum[m][row]) : row_sum[m][row]);
            const int tile_row = 16 * m + 8 * row + lane / 4;
#pragma unroll
            for (int n = 0; n < d_head / 8; ++n)
                *reinterpret_cast<uint32_t *>(O_tile + tile_offset<d_head, config>(tile_row, n) + lane % 4 * 2) =
                    pack<T>(O[m][n][2 * row] * inverse, O[m][n][2 * row + 1] * inverse);
        }
    __syncwarp();  // the warp's rows are complete
#pragma unroll
    for (int i = 0; i < 16 * m_tiles * chunks; i += 32) {
        const int row = (i + lane) / chunks, c = (i + lane) % chunks;
        *reinterpret_cast<uint4 *>(global + row * stride_row + c * chunk) =
            *reinterpret_cast<const uint4 *>(O_tile + tile_offset<d_head, config>(row, c));
    }
}

// ---- kernel ----

// grid: (Nq / Br, Hq, B)
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(32 * config.warps, config.resident_blocks) flash_kernel(const FlashParams params) {
    using Size = Sizes<d_head, config>;
    constexpr int Br = config.Br, Bc = config.Bc, kv_stages = config.kv_stages, m_tiles = Size::m_tiles;
    extern __shared__ __align__(256) unsigned char shared[];
    T *Q_buffer = reinterpret_cast<T *>(shared);  // [Br, d_head]; O's way out, too
    T *K_buffers = Q_buffer + Br * d_head;        // [kv_stages, Bc, d_head]
    T *V_buffers = K_buffers + kv_stages * Bc * d_head;

    const int64_t batch = blockIdx.z, head = blockIdx.y, first_row = blockIdx.x * Br;
    const T *Q_global = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch +
                        head * params.Q.stride_head + first_row * params.Q.stride_row;
    const T *K_global =
        static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + head * params.K.stride_head;
    const T *V_global =
        static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + head * params.V.stride_head;
    T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
                  first_row * params.O.stride_row;
    // Tiles for the copies, and operands for ldmatrix. lean: K and V are visited backwards.
    Tiles<T, d_head, config, Br> Q(Q_buffer, Q_global, params.Q.stride_row, 0);
    Tiles<T, d_head, config, Bc> K(K_buffers, K_global, params.K.stride_row, params.Nkv - Bc);
    Tiles<T, d_head, config, Bc> V(V_buffers, V_global, params.V.stride_row, params.Nkv - Bc);
    const int warp_row = threadIdx.x / 32 * Size::warp_rows;  // of the block's rows
    T *Q_warp = Q_buffer + warp_row * d_head;                 // [warp_rows, d_head]
    const Operand<T, d_head, config> Q_tile{Q_buffer, ptx::shared_address(Q_warp + lane_offset<d_head, config>())};
    const uint32_t K_first = ptx::shared_address(K_buffers + lane_offset<d_head, config, config.lean>());
    const uint32_t V_first = ptx::shared_address(V_buffers + lane_offset<d_head, config>());

    float O[m_tiles][d_head / 8][4] = {};                 // [warp_rows, d_head] per warp
    float row_max[m_tiles][2], row_sum[m_tiles][2] = {};  // rows lane / 4 and lane / 4 + 8 of each piece
    for (int m = 0; m < m_tiles; ++m) row_max[m][0] = row_max[m][1] = -INFINITY;

    load_tile(Q, 0);
    if (config.eager) load_tile(K, 0);
    if (config.eager && kv_stages == 2) load_tile(V, 0);
    if (config.eager) ptx::cp_async_commit();
    uint32_t Q_fragment[Size::Q_stages][Size::Q_steps][m_tiles][4];
    if constexpr (config.Q_in_registers) {
        if (config.async && !config.eager) ptx::cp_async_commit();
        if (config.async) ptx::cp_async_wait<0>();
        __syncthreads();  // all of Q is there
        load_Q_steps(Q_fragment, Q_tile, 0);
    }

    const int kv_tiles = params.Nkv / Bc;
    for (int j = 0; j < kv_tiles; ++j) {
        const int buffer = j % kv_stages;
        const Operand<T, d_head, config> K_tile{K_buffers + buffer * Bc * d_head, K_first + buffer * Size::tile_bytes};
        const Operand<T, d_head, config> V_tile{V_buffers + buffer * Bc * d_head, V_first + buffer * Size::tile_bytes};
        wait_kv_tiles(K, V, j, kv_tiles);

        float S[m_tiles][Size::n_tiles][4] = {};  // [warp_rows, Bc] per warp
        multiply_QK(S, Q_fragment, Q_tile, K_tile);
        if constexpr (config.eager && kv_stages == 1) {
            __syncthreads();  // everyone is done with K: its buffer is free for the next tile
            if (j + 1 < kv_tiles) load_tile(K, j + 1);
            ptx::cp_async_commit();  // an empty batch after the last tile, so that the count below holds
        }

        float rescale[m_tiles][2];  // what older sums and outputs shrink by when the maximum grows
        softmax_step<config>(S, row_max, row_sum, rescale, params.scale);
        rescale_O<config>(O, rescale);
        uint32_t P[m_tiles][Size::p_steps][4];  // [warp_rows, Bc] per warp
        round_P<T>(P, S);

        if constexpr (config.eager && kv_stages == 1) {
            ptx::cp_async_wait<1>();  // all but the newest batch, which is the next K: this thread's part of V is there
            __syncthreads();          // and so are the others' parts
        }
        multiply_PV(O, P, V_tile);
        if (!config.eager) __syncthreads();  // everyone is done with the tiles before they are overwritten
    }
    store_O<T, d_head, config>(O_global + warp_row * params.O.stride_row, params.O.stride_row, Q_warp, O, row_sum);
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
