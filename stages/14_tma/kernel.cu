// Stage 14: TMA. One thread asks for whole tiles, already swizzled; barriers in shared memory say when a tile has come
// ("full") and when its buffer may be filled again ("empty"). The products are those of stage 13.
//
// One block of 4 warps works on Br = 128 rows of Q, each warp on 32 of them, and walks over K and V in tiles of
// Bc = 64 rows. Tiles lie in shared memory as TMA brings them, in panels of 64 columns; ldmatrix brings 16x16 pieces of
// them into registers in the layout that mma wants ("fragments", drawn in the README of stage 04).

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"

constexpr int Br = 128;  // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 64;   // rows of K and V in a tile
constexpr int warps = 4, threads = 32 * warps;
constexpr int warp_rows = Br / warps;  // rows of Q that a warp works on
constexpr int kv_stages = 2;           // buffers for tiles of K and of V
constexpr int fragment_stages = 1;     // buffers for fragments of Q, K and V: 1 or 2 (2 is slower here: see README)
constexpr int chunk = 8;               // elements in 16 bytes: a row of an 8x8 matrix
constexpr int panel = 64;              // elements in 128 bytes: the columns that TMA swizzles together

// What a warp computes, in pieces of mma.m16n8k16:
constexpr int m_tiles = warp_rows / 16;  // S, P, O: pieces of 16 rows
constexpr int n_tiles = Bc / 8;          // S: pieces of 8 columns
constexpr int p_steps = Bc / 16;         // O += PV: steps of 16 along the rows of V
// ... and d_head / 16 steps along d_head for S = QKᵀ, d_head / 8 pieces of 8 columns for O.

// A block's shared memory. TMA wants tiles at multiples of 1,024 bytes.
template <typename T, int d_head>
struct Shared {
    T Q[Br * d_head];  // [d_head / panel][Br][panel]; O's way out, too
    T K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];
    uint64_t full[kv_stages], empty[kv_stages];  // for each buffer of K and V: mbarriers
};

// Where element 8 * c of row `row` lies in a tile of `rows` rows: in panel c / 8, whose rows have 8 chunks. TMA has put
// chunk c into the place of chunk c XOR row, modulo 8.
template <int rows>
__device__ int tile_offset(int row, int c) {
    return (c / 8 * rows + row) * panel + (c ^ row) % 8 * chunk;
}

// Asks for the rows of a tile from `row` on, of one head: the calling thread goes on at once.
__device__ void load_tile(void *tile, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// An address of tile_offset's that is `down` rows further down (a multiple of 8) and c chunks (a multiple of 2) to the
// right: constants both, for the compiler has unrolled the loops.
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

// The largest (the sum) of x over the four lanes that hold one row of S.
__device__ float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// grid: (Hq, B, Nq / Br rounded up)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<Shared<T, d_head> *>(shared_bytes);

    // Blocks start in the order of their index: of all heads the last rows, which see most keys if causal, come first.
    const int batch = blockIdx.y, head = blockIdx.x, kv_head = head / (params.Hq / params.Hkv);
    const int first_row = (gridDim.z - 1 - blockIdx.z) * Br;
    // Row i sees columns 0 to i + diagonal: the last row sees all of K.
    const int diagonal = params.causal ? params.Nkv - params.Nq : params.Nkv;
    const int columns = min(params.Nkv, first_row + Br + diagonal);  // of K and V that the block's rows see
    T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
                  first_row * params.O.stride_row;

    float O[m_tiles][d_head / 8][4] = {};  // [warp_rows, d_head] per warp
    // Rows lane / 4 and lane / 4 + 8 of each piece: the maximum of S, not scaled; of the sum of P this lane's part.
    float row_max[m_tiles][2], row_sum[m_tiles][2];
    for (int m = 0; m < m_tiles; ++m)
        for (int half = 0; half < 2; ++half) row_max[m][half] = -INFINITY, row_sum[m][half] = 0.0f;

    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    // Addresses for ldmatrix, once for all tiles: this lane's row of the first piece. Lanes 0-15 have the left halves
    // of 16 rows, lanes 16-31 the right ones; of K 8 lanes each by turns, so that the two registers of an operand B
    // come out as neighbours.
    constexpr int tile_bytes = Bc * d_head * sizeof(T);
    const int lane = threadIdx.x % 32, Q_row = threadIdx.x / 32 * warp_rows + lane % 16;
    const int tiles = max(columns + Bc - 1, Bc) / Bc;  // one, all masked, if they see no key
    const uint32_t Q_first = ptx::shared_address(shared.Q) + tile_offset<Br>(Q_row, lane / 16) * sizeof(T);
    const uint32_t K_first =
        ptx::shared_address(shared.K) + tile_offset<Bc>(lane % 8 + lane / 16 * 8, lane / 8 % 2) * sizeof(T);
    const uint32_t V_first = ptx::shared_address(shared.V) + tile_offset<Bc>(lane % 16, lane / 16) * sizeof(T);

    if (threadIdx.x == 0) {
        for (int s = 0; s < kv_stages; ++s) {
            ptx::mbarrier_init(&shared.full[s], 1);       // the thread that asks arrives; the bytes are counted besides
            ptx::mbarrier_init(&shared.empty[s], warps);  // each warp arrives when it has read the buffer
        }
        ptx::fence_mbarrier_init();

        // The last tile comes first, and with it Q. Rows behind the last one arrive as zeros.
        ptx::mbarrier_arrive_expect_tx(&shared.full[0], sizeof(shared.Q) + 2 * tile_bytes);
        load_tile(shared.Q, maps.Q, &shared.full[0], first_row, head, batch);
        load_tile(shared.K[0], maps.K, &shared.full[0], (tiles - 1) * Bc, kv_head, batch);
        load_tile(shared.V[0], maps.V, &shared.full[0], (tiles - 1) * Bc, kv_head, batch);
    }
    __syncthreads();  // nobody waits at a barrier that is not there yet

    for (int j = 0; j < tiles; ++j) {
        const int now = j % kv_stages, next = (j + 1) % kv_stages;

        // ---- load ----
        if (threadIdx.x == 0 && j + 1 < tiles) {
            // The buffer's use number (j + 1) / kv_stages; the one before it must be over. Before the first there is
            // none, and a fresh barrier lets parity 1 pass.
            ptx::mbarrier_wait(&shared.empty[next], (j + 1) / kv_stages % 2 ^ 1);
            ptx::mbarrier_arrive_expect_tx(&shared.full[next], 2 * tile_bytes);
            load_tile(shared.K[next], maps.K, &shared.full[next], (tiles - 2 - j) * Bc, kv_head, batch);
            load_tile(shared.V[next], maps.V, &shared.full[next], (tiles - 2 - j) * Bc, kv_head, batch);
        }
        __syncwarp();
        ptx::mbarrier_wait(&shared.full[now], j / kv_stages % 2);  // all bytes of this tile are there

        // ---- S = QKᵀ ----
        float S[m_tiles][n_tiles][4] = {};  // [warp_rows, Bc] per warp
        uint32_t Q_fragment[fragment_stages][m_tiles][4], K_fragment[fragment_stages][n_tiles][2];
#pragma unroll
        for (int k = 1 - fragment_stages; k < d_head / 16; ++k) {
            const int ahead = k + fragment_stages - 1;  // the step that is loaded while step k is multiplied
            if (ahead < d_head / 16) {
                load_Q_fragment<T, d_head>(Q_fragment[ahead % fragment_stages], Q_first, ahead);
                load_K_fragment<T, d_head>(K_fragment[ahead % fragment_stages], K_first + now * tile_bytes, ahead);
            }
            if (k < 0) continue;
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
                    ptx::mma_m16n8k16<T>(S[m][n], Q_fragment[k % fragment_stages][m],
                                         K_fragment[k % fragment_stages][n]);
        }

        // ---- mask ----
        const int warp_row = first_row + threadIdx.x / 32 * warp_rows, first_column = (tiles - 1 - j) * Bc;
        if (first_column + Bc > min(params.Nkv, warp_row + 1 + diagonal)) {  // the warp's first row sees fewest
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < n_tiles; ++n)
#pragma unroll
                    for (int x = 0; x < 4; ++x) {
                        const int i = warp_row + 16 * m + x / 2 * 8 + lane / 4;
                        if (first_column + 8 * n + lane % 4 * 2 + x % 2 >= min(params.Nkv, i + 1 + diagonal))
                            S[m][n][x] = -INFINITY;
                    }
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
                const float top = new_max == -INFINITY ? 0.0f : new_max;  // a row may not see any key yet
                const float shift = top * scale_log2;
                rescale[m][half] = ptx::exp2((row_max[m][half] - top) * scale_log2);
                row_max[m][half] = new_max;

                float sum = 0.0f;  // of this lane's elements alone
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
            if (ahead < p_steps)
                load_V_fragment<T, d_head>(V_fragment[ahead % fragment_stages], V_first + now * tile_bytes, ahead);
            if (k < 0) continue;
#pragma unroll
            for (int m = 0; m < m_tiles; ++m)
#pragma unroll
                for (int n = 0; n < d_head / 8; ++n)
                    ptx::mma_m16n8k16<T>(O[m][n], P[m][k], V_fragment[k % fragment_stages][n]);
        }
        __syncwarp();                                             // all lanes have read ...
        if (lane == 0) ptx::mbarrier_arrive(&shared.empty[now]);  // ... so the buffer is free as far as this warp goes
    }

    // ---- store ----
    // Through the warp's own rows of Q, which nobody else reads, so that rows leave in pieces of 16 bytes.
    T *O_tile = shared.Q + threadIdx.x / 32 * warp_rows * panel;  // warp_rows rows of each panel
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = row_reduce_sum(row_sum[m][half]);
            const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;  // rows that see no key are 0
            const int row = 16 * m + 8 * half + lane / 4, i = first_row + threadIdx.x / 32 * warp_rows + row;
            if (params.log_sum_exp && lane % 4 == 0 && i < params.Nq)
                params.log_sum_exp[(int64_t{batch} * params.Hq + head) * params.Nq + i] =
                    sum > 0.0f ? row_max[m][half] * params.scale + logf(sum) : -INFINITY;
#pragma unroll
            for (int n = 0; n < d_head / 8; ++n)
                *reinterpret_cast<uint32_t *>(O_tile + tile_offset<Br>(row, n) + lane % 4 * 2) =
                    pack<T>(O[m][n][2 * half] * inverse, O[m][n][2 * half + 1] * inverse);
        }
    __syncwarp();  // the warp's rows are complete
    constexpr int chunks = d_head / chunk;
#pragma unroll
    for (int i = 0; i < warp_rows * chunks; i += 32) {
        const int row = (i + lane) / chunks, c = (i + lane) % chunks;
        T *to = O_global + (threadIdx.x / 32 * warp_rows + row) * params.O.stride_row + c * chunk;
        if (first_row + threadIdx.x / 32 * warp_rows + row < params.Nq)
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(O_tile + tile_offset<Br>(row, c));
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.stage = 14,
                                  .title = "TMA",
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
