// Vectorized loads. Tiles move between global and shared memory in pieces of 16 bytes.
//
// One block works on Br = 64 rows of Q and walks over K and V in tiles of Bc = 64 rows. Its 256 threads stand in a
// grid of 16 x 16: thread (ty, tx) owns rows 4 ty to 4 ty + 3 of S, P and O, and of those rows
// the columns tx, tx + 16, tx + 32, ... of S, and the pairs of columns tx, tx + 16, ... of O.

#include "launch.h"
#include "numbers.cuh"

constexpr int Br = 64;    // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 64;    // rows of K and V in a tile
constexpr int side = 16;  // threads in a row and in a column of the block's grid
constexpr int threads = side * side;
constexpr int rows = Br / side;     // of S, P and O that a thread works on
constexpr int columns = Bc / side;  // of S that a thread works on
constexpr int chunk = 8;            // elements in 16 bytes: what a thread copies at a time
constexpr int padding = 2;          // elements after a row of a tile: neighbouring rows start in neighbouring banks

// Copies a tile from global to shared memory, 16 bytes a thread at a time; neighbouring threads take neighbouring
// chunks. global: [tile_rows, d_head] with stride_row elements from row to row; tile: [tile_rows, d_head + padding].
template <typename T, int d_head, int tile_rows>
__device__ void load_tile(T *tile, const T *global, int64_t stride_row) {
#pragma unroll
    for (int i = threadIdx.x * chunk; i < tile_rows * d_head; i += threads * chunk) {
        const int row = i / d_head, column = i % d_head;
        const uint4 from = *reinterpret_cast<const uint4 *>(global + row * stride_row + column);
        // The padding leaves rows of the tile on multiples of 4 bytes only: four accesses there.
        uint32_t *to = reinterpret_cast<uint32_t *>(tile + row * (d_head + padding) + column);
        to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w;
    }
}

// The way back, for O.
template <typename T, int d_head, int tile_rows>
__device__ void store_tile(T *global, const T *tile, int64_t stride_row) {
#pragma unroll
    for (int i = threadIdx.x * chunk; i < tile_rows * d_head; i += threads * chunk) {
        const int row = i / d_head, column = i % d_head;
        const uint32_t *from = reinterpret_cast<const uint32_t *>(tile + row * (d_head + padding) + column);
        *reinterpret_cast<uint4 *>(global + row * stride_row + column) = make_uint4(from[0], from[1], from[2], from[3]);
    }
}

// The largest (the sum) of x over the 16 threads that share a row of S.
__device__ float row_reduce_max(float x) {
    for (int step = side / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}
__device__ float row_reduce_sum(float x) {
    for (int step = side / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

// grid: (Nq / Br, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) flash_kernel(const FlashParams params) {
    extern __shared__ __align__(16) unsigned char shared[];
    T *Q_tile = reinterpret_cast<T *>(shared);     // [Br, d_head + padding]; O's way out, too
    T *K_tile = Q_tile + Br * (d_head + padding);  // [Bc, d_head + padding]
    T *V_tile = K_tile + Bc * (d_head + padding);  // [Bc, d_head + padding]
    T *P_tile = V_tile + Bc * (d_head + padding);  // [Br, Bc + padding]

    const int64_t batch = blockIdx.z, head = blockIdx.y, first_row = blockIdx.x * Br;
    const T *Q = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch + head * params.Q.stride_head +
                 first_row * params.Q.stride_row;
    const T *K = static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + head * params.K.stride_head;
    const T *V = static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + head * params.V.stride_head;
    T *O_global = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
                  first_row * params.O.stride_row;

    const int tx = threadIdx.x % side, ty = threadIdx.x / side;
    const T *Q_rows = Q_tile + ty * rows * (d_head + padding);  // this thread's rows
    T *P_rows = P_tile + ty * rows * (Bc + padding);

    constexpr int pairs = d_head / 2 / side;  // of columns of O that a thread works on
    float O[rows][pairs][2] = {};             // [Br, d_head] per block
    float row_max[rows], row_sum[rows];       // the same in all 16 threads of a row
    for (int r = 0; r < rows; ++r) row_max[r] = -INFINITY, row_sum[r] = 0.0f;

    load_tile<T, d_head, Br>(Q_tile, Q, params.Q.stride_row);

    const int tiles = params.Nkv / Bc;  // of K and V
    for (int j = 0; j < tiles; ++j) {
        // ---- load ----
        load_tile<T, d_head, Bc>(K_tile, K + j * Bc * params.K.stride_row, params.K.stride_row);
        load_tile<T, d_head, Bc>(V_tile, V + j * Bc * params.V.stride_row, params.V.stride_row);
        __syncthreads();  // the tiles are there, written by all threads

        // ---- S = QKᵀ ----
        float S[rows][columns] = {};  // [Br, Bc] per block
#pragma unroll 4
        for (int k = 0; k < d_head; k += 2) {
            float2 q[rows], key[columns];
#pragma unroll
            for (int r = 0; r < rows; ++r) q[r] = to_float2(Q_rows + r * (d_head + padding) + k);
#pragma unroll
            for (int c = 0; c < columns; ++c) key[c] = to_float2(K_tile + (tx + c * side) * (d_head + padding) + k);
#pragma unroll
            for (int r = 0; r < rows; ++r)
#pragma unroll
                for (int c = 0; c < columns; ++c) S[r][c] += q[r].x * key[c].x + q[r].y * key[c].y;
        }

        // ---- online softmax ----
        float rescale[rows];  // what older sums and outputs shrink by when the maximum grows
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            float new_max = row_max[r];
#pragma unroll
            for (int c = 0; c < columns; ++c) {
                S[r][c] *= params.scale;
                new_max = fmaxf(new_max, S[r][c]);
            }
            new_max = row_reduce_max(new_max);
            rescale[r] = __expf(row_max[r] - new_max);  // exp(-inf) = 0 on the first tile
            row_max[r] = new_max;

            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < columns; ++c) {
                S[r][c] = __expf(S[r][c] - new_max);
                sum += S[r][c];
            }
            row_sum[r] = row_sum[r] * rescale[r] + row_reduce_sum(sum);
        }
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int c = 0; c < pairs; ++c) O[r][c][0] *= rescale[r], O[r][c][1] *= rescale[r];

        // P = S rounded to 16 bits. Its row is spread over 16 threads, and each of them will need all of it.
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int c = 0; c < columns; ++c) P_rows[r * (Bc + padding) + tx + c * side] = from_float<T>(S[r][c]);
        __syncwarp();  // those 16 threads are in one warp: no need to wait for the block

        // ---- O += PV ----
#pragma unroll 4
        for (int k = 0; k < Bc; k += 2) {
            float2 p[rows];
#pragma unroll
            for (int r = 0; r < rows; ++r) p[r] = to_float2(P_rows + r * (Bc + padding) + k);
#pragma unroll
            for (int c = 0; c < pairs; ++c) {
                const T *V_pair = V_tile + k * (d_head + padding) + 2 * (tx + c * side);
                const float2 v0 = to_float2(V_pair), v1 = to_float2(V_pair + d_head + padding);
#pragma unroll
                for (int r = 0; r < rows; ++r) {
                    O[r][c][0] += p[r].x * v0.x + p[r].y * v1.x;
                    O[r][c][1] += p[r].x * v0.y + p[r].y * v1.y;
                }
            }
        }
        __syncthreads();  // everyone is done with K_tile and V_tile before they are overwritten
    }

    // ---- store ----
    // Through Q_tile, which nobody reads any more, so that neighbouring threads write neighbouring chunks.
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const float inverse = 1.0f / row_sum[r];
#pragma unroll
        for (int c = 0; c < pairs; ++c) {
            T *to = Q_tile + (ty * rows + r) * (d_head + padding) + 2 * (tx + c * side);
            *reinterpret_cast<uint32_t *>(to) = pack<T>(O[r][c][0] * inverse, O[r][c][1] * inverse);
        }
    }
    __syncthreads();  // all of O is there
    store_tile<T, d_head, Br>(O_global, Q_tile, params.O.stride_row);
}

// ---- launch ----

constexpr flash::Limits limits = {
    .title = "Vectorized loads", .min_compute = 75, .Br = Br, .Bc = Bc, .multiple_Nq = Br, .multiple_Nkv = Bc};

static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        const size_t shared_bytes = ((Br + 2 * Bc) * (d_head + padding) + Br * (Bc + padding)) * sizeof(T);
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
