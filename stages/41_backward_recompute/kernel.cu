// Recomputation. P is computed again from Q, K and the log-sum-exp that forward has left, tile by tile, and neither P
// nor dS lies in global memory.
//
// One block of 4 warps holds Bc = 64 rows of K and V and walks over the rows of Q and dO that see them, in tiles of
// Br = 64. A warp owns 16 keys and computes transposed score tiles, keys by queries, so that P and dS come out of the
// tensor cores as operands of the products that sum over queries: dV and dK grow in registers. dQ sums over keys, which
// other blocks hold: dS goes through shared memory, and each block adds its part of dQ to fp32 sums in the workspace.
// A small kernel before computes D and zeroes these sums; one after it scales and rounds them.

#include "launch_backward.h"
#include "numbers.cuh"
#include "ptx.cuh"

constexpr int Br = 64;  // rows of Q and dO in a tile
constexpr int Bc = 64;  // rows of K and V that a block works on
constexpr int warp_keys = 16, warps = Bc / warp_keys, threads = 32 * warps;
constexpr int chunk = 8;  // elements in 16 bytes: what a thread copies, and a row of an 8x8 matrix
static_assert(threads == 2 * Br && warps == Br / 16, "a thread loads one statistic, a warp computes 16 rows of dQ");

template <typename T, int d_head>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];   // [Bc, d_head]; the ways out of dK and dV, too
    T Q[Br * d_head], dO[Br * d_head];  // [Br, d_head]
    T dS[Bc * Br];                      // transposed: [Bc, Br]
    float log_sum_exp[Br], D[Br];       // the former in powers of 2
};

// The workspace: the sums of dQ and D, one after the other, in fp32.
struct Workspace {
    float *dQ;  // [B, Hq, Nq, d_head]
    float *D;   // [B, Hq, Nq]
};

template <int d_head>
__device__ Workspace workspace_of(const FlashBackwardParams &params) {
    float *dQ = static_cast<float *>(params.workspace);
    return {dQ, dQ + static_cast<int64_t>(params.B) * params.Hq * params.Nq * d_head};
}

template <typename T>
__device__ T *of_head(const FlashTensor &tensor, int head, int batch) {
    return static_cast<T *>(tensor.data) + batch * tensor.stride_batch + head * tensor.stride_head;
}

// ---- tiles in shared memory, as in stage swizzle ----

// Where element 8 * c of row `row` lies in a tile of `columns` columns.
template <int columns>
__device__ int tile_offset(int row, int c) {
    return row * columns + (c ^ row % 8) * chunk;
}

// An address of tile_offset's that is `rows` further down (a multiple of 8) and c chunks (a multiple of 2) to the
// right.
template <typename T, int columns>
__device__ uint32_t piece_address(uint32_t first, int rows, int c) {
    return (first ^ c * chunk * sizeof(T)) + rows * columns * sizeof(T);
}

// Starts copying rows of a tensor into a tile. Rows from `end` on do not exist: zeros arrive in their place.
template <typename T, int d_head, int rows>
__device__ void load_tile(T *tile, const T *from, int64_t stride, int end) {
    constexpr int chunks = d_head / chunk;
    const uint32_t to = ptx::shared_address(tile);
#pragma unroll
    for (int i = threadIdx.x; i < rows * chunks; i += threads) {
        const int row = i / chunks, c = i % chunks;
        const T *source = row < end ? from + row * stride + c * chunk : from;
        ptx::cp_async_16(to + tile_offset<d_head>(row, c) * sizeof(T), source, row < end ? 16 : 0);
    }
}

// The addresses that this lane gives ldmatrix for a tile's first 16x16 piece, from row `row` and chunk c on. An operand
// A has 16 rows on the left and then on the right ...
template <int columns, typename T>
__device__ uint32_t first_piece(const T *tile, int row = 0, int c = 0) {
    const int lane = threadIdx.x % 32;
    return ptx::shared_address(tile + tile_offset<columns>(row + lane % 16, c + lane / 16));
}
// ... and an operand B left and right by turns, 8 rows each. So has an A that is transposed on the way, and so has a
// transposed B the order of an A.
template <int columns, typename T>
__device__ uint32_t first_piece_by_turns(const T *tile, int row = 0, int c = 0) {
    const int lane = threadIdx.x % 32;
    return ptx::shared_address(tile + tile_offset<columns>(row + lane % 8 + lane / 16 * 8, c + lane / 8 % 2));
}

// ---- the warp's products ----

// C += A Bᵀ over d_head: 16 rows of A's tile by the Br rows of B's.
template <typename T, int d_head>
__device__ void multiply_rows(float (&C)[Br / 8][4], uint32_t A_first, uint32_t B_first) {
#pragma unroll
    for (int k = 0; k < d_head / 16; ++k) {
        uint32_t A[4];
        ptx::ldmatrix_x4(A, piece_address<T, d_head>(A_first, 0, 2 * k));
#pragma unroll
        for (int n = 0; n < Br / 8; n += 2) {
            uint32_t B[4];
            ptx::ldmatrix_x4(B, piece_address<T, d_head>(B_first, 8 * n, 2 * k));
            ptx::mma_m16n8k16<T>(C[n], A, {B[0], B[1]});
            ptx::mma_m16n8k16<T>(C[n + 1], A, {B[2], B[3]});
        }
    }
}

// C += A B for one step of 16 along B's rows: A is a piece of 16x16, B's tile has d_head columns, of which C has
// `columns` from chunk c on.
template <typename T, int d_head, int columns>
__device__ void multiply_step(float (&C)[columns / 8][4], const uint32_t (&A)[4], uint32_t B_first, int k, int c = 0) {
#pragma unroll
    for (int n = 0; n < columns / 8; n += 2) {
        uint32_t B[4];
        ptx::ldmatrix_x4_trans(B, piece_address<T, d_head>(B_first, 16 * k, c + n));
        ptx::mma_m16n8k16<T>(C[n], A, {B[0], B[1]});
        ptx::mma_m16n8k16<T>(C[n + 1], A, {B[2], B[3]});
    }
}

// C += A B over B's Br rows: A = [16, Br] as accumulators hold it, rounded to T here.
template <typename T, int d_head>
__device__ void multiply_columns(float (&C)[d_head / 8][4], const float (&A)[Br / 8][4], uint32_t B_first) {
#pragma unroll
    for (int k = 0; k < Br / 16; ++k) {
        uint32_t piece[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float *pair = &A[2 * k + i / 2][i % 2 * 2];
            piece[i] = pack<T>(pair[0], pair[1]);
        }
        multiply_step<T, d_head, d_head>(C, piece, B_first, k);
    }
}

// ---- scores ----

// P = exp(scale * S - log_sum_exp) in place of S = [16 keys, Br queries]. `visible`: how many keys from the warp's
// first on the tile's first query sees; each query sees one more than the one before it, but never more than `end`.
__device__ void recompute_P(float (&S)[Br / 8][4], const float *log_sum_exp, float scale_log2, int visible, int end) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < Br / 8; ++n)
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            const int query = 8 * n + lane % 4 * 2 + x % 2;
            S[n][x] = ptx::exp2(S[n][x] * scale_log2 - log_sum_exp[query]);
        }
    if (min(visible, end) >= warp_keys) return;  // the first query sees all of the warp's keys, and so do all others
#pragma unroll
    for (int n = 0; n < Br / 8; ++n)
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            const int query = 8 * n + lane % 4 * 2 + x % 2, key = x / 2 * 8 + lane / 4;
            if (key >= min(visible + query, end)) S[n][x] = 0.0f;
        }
}

// dS = P * (dP - D) in place of dP; a copy, rounded to T, goes to the warp's rows of the tile that dQ is computed from.
template <typename T>
__device__ void compute_dS(float (&dP)[Br / 8][4], const float (&P)[Br / 8][4], const float *D, T *dS_tile) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < Br / 8; ++n) {
#pragma unroll
        for (int x = 0; x < 4; ++x) dP[n][x] = P[n][x] * (dP[n][x] - D[8 * n + lane % 4 * 2 + x % 2]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            T *to = dS_tile + tile_offset<Br>(warp * warp_keys + 8 * half + lane / 4, n) + lane % 4 * 2;
            *reinterpret_cast<uint32_t *>(to) = pack<T>(dP[n][2 * half], dP[n][2 * half + 1]);
        }
    }
}

// ---- gradients ----

// Adds the block's part of the warp's 16 rows of dQ, from row `row` of a head on: dS K, summed over the block's keys.
template <typename T, int d_head>
__device__ void add_dQ(float *dQ_sums, uint32_t dS_first, uint32_t K_first, int rows) {
    const int lane = threadIdx.x % 32;
    constexpr int columns = 64;  // at a time: with all 128 there would be too few registers
#pragma unroll
    for (int first = 0; first < d_head; first += columns) {
        float dQ[columns / 8][4] = {};  // [16, columns] per warp
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            uint32_t dS[4];
            ptx::ldmatrix_x4_trans(dS, piece_address<T, Br>(dS_first, 16 * k, 0));
            multiply_step<T, d_head, columns>(dQ, dS, K_first, k, first / chunk);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = 8 * half + lane / 4;
            if (row >= rows) continue;
#pragma unroll
            for (int n = 0; n < columns / 8; ++n) {
                float *sum = dQ_sums + row * d_head + first + 8 * n + lane % 4 * 2;
                atomicAdd(sum, dQ[n][2 * half]);
                atomicAdd(sum + 1, dQ[n][2 * half + 1]);
            }
        }
    }
}

// Stores the warp's 16 rows of a gradient, times `scale`, by way of its own rows of a tile that no warp reads any more,
// so that rows leave in pieces of 16 bytes. `rows`: so many of them exist.
template <typename T, int d_head>
__device__ void store_rows(T *to, int64_t stride, const float (&C)[d_head / 8][4], T *tile, float scale, int rows) {
    constexpr int chunks = d_head / chunk;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < d_head / 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<uint32_t *>(tile + tile_offset<d_head>(8 * half + lane / 4, n) + lane % 4 * 2) =
                pack<T>(scale * C[n][2 * half], scale * C[n][2 * half + 1]);
    __syncwarp();
#pragma unroll
    for (int i = lane; i < warp_keys * chunks; i += 32) {
        const int row = i / chunks, c = i % chunks;
        if (row >= rows) continue;
        const uint4 piece = *reinterpret_cast<const uint4 *>(tile + tile_offset<d_head>(row, c));
        *reinterpret_cast<uint4 *>(to + row * stride + c * chunk) = piece;
    }
}

// Starts loading a tile of Q and dO, and writes its statistics.
template <typename T, int d_head>
__device__ void load_queries(SharedStorage<T, d_head> &tiles, const FlashBackwardParams &params, int head,
                             int first_row) {
    const int batch = blockIdx.y, rows = params.Nq - first_row;
    const T *Q = of_head<T>(params.Q, head, batch) + first_row * params.Q.stride_row;
    const T *dO = of_head<T>(params.dO, head, batch) + first_row * params.dO.stride_row;
    load_tile<T, d_head, Br>(tiles.Q, Q, params.Q.stride_row, rows);
    load_tile<T, d_head, Br>(tiles.dO, dO, params.dO.stride_row, rows);

    const int row = threadIdx.x % Br;
    const int64_t at = (static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + first_row + row;
    if (threadIdx.x < Br) {
        // Rows that do not exist and rows that see no key get infinity: exp2 of whatever less infinity is 0.
        const float log_sum_exp = row < rows ? params.log_sum_exp[at] : INFINITY;
        tiles.log_sum_exp[row] = log_sum_exp == -INFINITY ? INFINITY : log_sum_exp * 1.44269504f;
    } else {
        tiles.D[row] = row < rows ? workspace_of<d_head>(params).D[at] : 0.0f;
    }
}

// ---- kernels ----

// D = rowsum(dO * O), and zeros in the sums of dQ: one thread for each 8 elements. grid: (blocks of rows, Hq, B)
constexpr int small_threads = 256;  // per block, of this kernel and of the last

template <typename T, int d_head>
__global__ void __launch_bounds__(small_threads) prepare_kernel(const FlashBackwardParams params) {
    constexpr int lanes = d_head / chunk;  // that share a row
    const int row = blockIdx.x * (small_threads / lanes) + threadIdx.x / lanes, c = threadIdx.x % lanes;
    const int head = blockIdx.y, batch = blockIdx.z;
    float sum = 0.0f;
    const int64_t at = (static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + row;
    const Workspace workspace = workspace_of<d_head>(params);
    if (row < params.Nq) {
        const T *O = of_head<T>(params.O, head, batch) + row * params.O.stride_row + c * chunk;
        const T *dO = of_head<T>(params.dO, head, batch) + row * params.dO.stride_row + c * chunk;
        const uint4 O_chunk = *reinterpret_cast<const uint4 *>(O), dO_chunk = *reinterpret_cast<const uint4 *>(dO);
#pragma unroll
        for (int x = 0; x < chunk; x += 2) {
            const float2 one = to_float2(reinterpret_cast<const T *>(&O_chunk) + x);
            const float2 other = to_float2(reinterpret_cast<const T *>(&dO_chunk) + x);
            sum += one.x * other.x + one.y * other.y;
        }
        float4 *zeros = reinterpret_cast<float4 *>(workspace.dQ + at * d_head);
        zeros[c] = zeros[c + lanes] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (row < params.Nq && c == 0) workspace.D[at] = sum;
}

// dK and dV of Bc keys, and their part of dQ. grid: (Hkv * (Nkv / Bc rounded up), B): the first tiles of all heads come
// first; if causal, most queries see them. The heads of Q that share the block's keys are visited one after the other:
// dK and dV are whole when they leave, in one order of summation, where sums in global memory would need zeros, atomics
// and another kernel that rounds them. The price is fewer blocks, which counts where there are few heads of K and V.
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) backward_kernel(const FlashBackwardParams params) {
    extern __shared__ __align__(256) unsigned char shared[];
    auto &tiles = *reinterpret_cast<SharedStorage<T, d_head> *>(shared);
    const int kv_head = blockIdx.x % params.Hkv, batch = blockIdx.y, first_key = blockIdx.x / params.Hkv * Bc;
    const int group = params.Hq / params.Hkv, warp = threadIdx.x / 32, warp_key = first_key + warp * warp_keys;
    // Row i sees keys 0 to i + diagonal: the last row sees all of them.
    const int diagonal = params.causal ? params.Nkv - params.Nq : params.Nkv;
    const int begin = max(first_key - diagonal, 0) / Br * Br;  // the first row of the first tile that sees a key

    const T *K = of_head<T>(params.K, kv_head, batch) + first_key * params.K.stride_row;
    const T *V = of_head<T>(params.V, kv_head, batch) + first_key * params.V.stride_row;
    load_tile<T, d_head, Bc>(tiles.K, K, params.K.stride_row, params.Nkv - first_key);
    load_tile<T, d_head, Bc>(tiles.V, V, params.V.stride_row, params.Nkv - first_key);
    int head = kv_head * group, first_row = begin;
    load_queries(tiles, params, head, first_row);
    ptx::cp_async_commit();

    float dK[d_head / 8][4] = {}, dV[d_head / 8][4] = {};  // [16, d_head] each per warp
    const uint32_t K_rows = first_piece<d_head>(tiles.K, warp * warp_keys), K_columns = first_piece<d_head>(tiles.K);
    const uint32_t V_rows = first_piece<d_head>(tiles.V, warp * warp_keys);
    const uint32_t Q_rows = first_piece_by_turns<d_head>(tiles.Q), Q_columns = first_piece<d_head>(tiles.Q);
    const uint32_t dO_rows = first_piece_by_turns<d_head>(tiles.dO), dO_columns = first_piece<d_head>(tiles.dO);
    const uint32_t dS_columns = first_piece_by_turns<Br>(tiles.dS, 0, 2 * warp);

    while (head < (kv_head + 1) * group) {
        ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is there for all, and the warps are done with the last one's dS

        // ---- S = QKᵀ ---- transposed, as all tiles of scores here
        float P[Br / 8][4] = {};  // [16 keys, Br] per warp
        multiply_rows<T, d_head>(P, K_rows, Q_rows);

        // ---- P from the log-sum-exp ----
        const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)
        recompute_P(P, tiles.log_sum_exp, scale_log2, first_row + 1 + diagonal - warp_key, params.Nkv - warp_key);

        // ---- dV += Pᵀ dO ----
        multiply_columns<T, d_head>(dV, P, dO_columns);

        // ---- dP = dO Vᵀ ----
        float dS[Br / 8][4] = {};  // dP first
        multiply_rows<T, d_head>(dS, V_rows, dO_rows);

        // ---- dS = P (dP - D) ----
        compute_dS(dS, P, tiles.D, tiles.dS);

        // ---- dK += dSᵀ Q ----
        multiply_columns<T, d_head>(dK, dS, Q_columns);

        // ---- load ----
        __syncthreads();  // dS is there for all, and the warps are done with Q, dO and their statistics
        const int now_head = head, now = first_row;
        first_row += Br;
        if (first_row >= params.Nq) {
            first_row = begin;
            ++head;
        }
        if (head < (kv_head + 1) * group) load_queries(tiles, params, head, first_row);
        ptx::cp_async_commit();

        // ---- dQ += dS K ---- while the next tile is on its way
        const int row = now + warp * 16;
        const int64_t at = (static_cast<int64_t>(batch) * params.Hq + now_head) * params.Nq + row;
        add_dQ<T, d_head>(workspace_of<d_head>(params).dQ + at * d_head, dS_columns, K_columns, params.Nq - row);
    }

    // ---- store ----
    __syncthreads();  // no warp reads K any more
    T *K_rows_out = tiles.K + warp * warp_keys * d_head, *V_rows_out = tiles.V + warp * warp_keys * d_head;
    T *dK_out = of_head<T>(params.dK, kv_head, batch) + warp_key * params.dK.stride_row;
    T *dV_out = of_head<T>(params.dV, kv_head, batch) + warp_key * params.dV.stride_row;
    store_rows<T, d_head>(dK_out, params.dK.stride_row, dK, K_rows_out, params.scale, params.Nkv - warp_key);
    store_rows<T, d_head>(dV_out, params.dV.stride_row, dV, V_rows_out, 1.0f, params.Nkv - warp_key);
}

// dQ = scale * its sums: one thread for each 4 elements. grid: (blocks of rows, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(small_threads) finish_kernel(const FlashBackwardParams params) {
    constexpr int lanes = d_head / 4;
    const int row = blockIdx.x * (small_threads / lanes) + threadIdx.x / lanes, c = threadIdx.x % lanes;
    const int head = blockIdx.y, batch = blockIdx.z;
    if (row >= params.Nq) return;
    const int64_t at = (static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + row;
    const float4 sum = reinterpret_cast<const float4 *>(workspace_of<d_head>(params).dQ + at * d_head)[c];
    T *dQ = of_head<T>(params.dQ, head, batch) + row * params.dQ.stride_row + 4 * c;
    const uint32_t low = pack<T>(params.scale * sum.x, params.scale * sum.y);
    const uint32_t high = pack<T>(params.scale * sum.z, params.scale * sum.w);
    *reinterpret_cast<uint2 *>(dQ) = make_uint2(low, high);
}

// ---- launch ----

constexpr flash::Limits limits = {
    .title = "Recomputation", .min_compute = 80, .Br = Br, .Bc = Bc, .causal = true, .grouped_heads = true};

static flash::BackwardTraits traits(const FlashBackwardParams &params) {
    const size_t rows = static_cast<size_t>(params.B) * params.Hq * params.Nq;
    return {.workspace_bytes = sizeof(float) * rows * (params.d_head + 1)};  // dQ is summed in any order
}

using Kernel = flash::TypedKernel<const FlashBackwardParams>;

struct Kernels {
    Kernel prepare, backward, finish;
};

static Kernels plan(const FlashBackwardParams &params) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        const auto of_rows = [&](int rows) { return dim3((params.Nq + rows - 1) / rows, params.Hq, params.B); };
        const dim3 of_keys(params.Hkv * ((params.Nkv + Bc - 1) / Bc), params.B);
        return Kernels{
            {prepare_kernel<T, d_head>, of_rows(small_threads * chunk / d_head), small_threads},
            {backward_kernel<T, d_head>, of_keys, threads, sizeof(SharedStorage<T, d_head>)},
            {finish_kernel<T, d_head>, of_rows(small_threads * 4 / d_head), small_threads},
        };
    });
}

extern "C" FlashStatus flash_backward(const FlashBackwardParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits);
    if (status == FLASH_OK) status = flash::check(params, limits, traits(*params));
    if (status != FLASH_OK) return status;
    const Kernels kernels = plan(*params);
    flash::KernelQueue queue(stream);
    queue.add(kernels.prepare, *params).add(kernels.backward, *params).add(kernels.finish, *params);
    return queue.status();
}

extern "C" FlashStatus flash_describe_backward(const FlashBackwardParams *params,
                                               FlashBackwardDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    if (status != FLASH_OK) return status;
    return flash::describe(limits, traits(*params), flash::untyped(plan(*params).backward), description);
}
