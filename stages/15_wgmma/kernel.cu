// Stage 15: wgmma. Four warps, a warpgroup, multiply together, straight from the tiles in shared memory: no ldmatrix,
// no fragments of Q, K and V. S, P and O stay in registers.
//
// One block of 2 warpgroups works on Br = 128 rows of Q, each warpgroup on 64 of them and each warp on 16, and walks
// over K and V in tiles of Bc = 128 rows. Tiles lie in shared memory as TMA brings them, in panels of 64 columns, and
// wgmma takes them as they are (drawn in the README).

#include "launch.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

constexpr int Br = 128;  // rows of Q (and of S, P, O) that a block works on
constexpr int Bc = 128;  // rows of K and V in a tile
constexpr int warpgroups = Br / 64, warps = 4 * warpgroups, threads = 32 * warps;
constexpr int kv_stages = 2;  // buffers for tiles of K and of V
constexpr int panel = 64;     // elements in 128 bytes: the columns that TMA swizzles together

// A block's shared memory. TMA and wgmma want tiles at multiples of 1,024 bytes.
template <typename T, int d_head>
struct Shared {
    T Q[Br * d_head];  // [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head], V[kv_stages][Bc * d_head];
    uint64_t full[kv_stages], empty[kv_stages];  // for each buffer of K and V: mbarriers
};

// Asks for the rows of a tile from `row` on, of one head: the calling thread goes on at once.
__device__ void load_tile(void *tile, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
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
    const int tiles = max(columns + Bc - 1, Bc) / Bc;                // one, all masked, if they see no key

    // A thread has two rows of its warp's 16: lane / 4 and lane / 4 + 8. Of each 8 columns of S and of O, it has the
    // columns 2 (lane % 4) and the next: registers 4 n and 4 n + 1 of the first row, 4 n + 2 and 4 n + 3 of the second.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);  // one for the warp, as the compiler now knows
    const int warp_row = first_row + threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
    float O[d_head / 2] = {};  // [64, d_head] per warpgroup
    // For each of the two rows: the maximum of S, not scaled; of the sum of P this lane's part.
    float row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {};
    const float scale_log2 = params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    // How wgmma finds the tiles: the warpgroup's 64 rows of Q and the rows of K, along d_head, and V's columns, along
    // its rows. 8 rows of a panel are 1,024 bytes.
    constexpr int row_bytes = panel * sizeof(T), tile_bytes = Bc * d_head * sizeof(T);
    const uint64_t Q_matrix = ptx::matrix_descriptor(shared.Q + warpgroup * 64 * panel, 0, 8 * row_bytes);
    const uint64_t K_matrix = ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes);
    const uint64_t V_matrix = ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes);

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

    for (uint32_t j = 0; j < tiles; ++j) {
        const uint32_t now = j % kv_stages, next = (j + 1) % kv_stages;

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
        float S[Bc / 2];  // [64, Bc] per warpgroup
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {  // 16 columns are 32 bytes of a row; a panel has four times 16
            const uint64_t step = further(k % 4 * 32), Q_panel = further(k / 4 * Br * row_bytes);
            const uint64_t K_tile = further(now * tile_bytes), K_panel = further(k / 4 * Bc * row_bytes);
            ptx::wgmma_ss<T, Bc>(S, Q_matrix + Q_panel + step, K_matrix + K_tile + K_panel + step, k > 0);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>(S);

        // ---- mask ----
        const int first_column = (tiles - 1 - j) * Bc;
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
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            const uint64_t V_rows = further(now * tile_bytes) + further(k * 16 * row_bytes);  // of 16 rows
            ptx::wgmma_rs<T, d_head>(O, P[k], V_matrix + V_rows, true);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>(O);
        if (lane == 0) ptx::mbarrier_arrive(&shared.empty[now]);  // the buffer is free as far as this warp goes
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

// ---- launch ----

constexpr flash::Limits limits = {.stage = 15,
                                  .title = "wgmma",
                                  .min_compute = 90,
                                  .Br = Br,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .most_Nq = 65535 * Br,  // where a grid's z ends
                                  .specific = true};      // sm_90a

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
