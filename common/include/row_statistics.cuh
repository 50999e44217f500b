// D and the log-sum-exp of each row, of which the products need no more than the heads that are being computed. So a
// kernel before computes those of the first heads alone. The others' come from warps of the main kernel that have
// nothing else to do at its beginning, while its blocks compute the first heads.
#pragma once

#include "backward_passes.cuh"
#include "cut_units.cuh"

// The statistics of the first `heads` heads of Q, counted over all batches.
// grid: (rows of a head's row tiles / 256 * lanes, Hq, batches that these heads are of); d_head / 8 lanes work on a
// row.
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(256)
    first_statistics_kernel(const FlashBackwardParams params, const Workspace workspace, const int heads) {
    ptx::let_next_launch_begin();  // with the set-up of its blocks, and with the other heads
    const int head = blockIdx.y, batch = blockIdx.z;
    if (batch * params.Hq + head >= heads) return;
    constexpr int lanes = d_head / 8;
    prepare_row<T, d_head, Br>(params, workspace, batch, head, blockIdx.x * (256 / lanes) + threadIdx.x / lanes);
}

// Boxes of a piece's rows.
struct StatisticsMaps {
    CUtensorMap O, dO;
};

// A warp that computes the other heads' statistics, one row tile after the other. It adds each tile to its head's
// counter, and at its end what it has done to tiles_there.
template <typename T, int d_head, int Br>
struct StatisticsWarp {
    static constexpr int rows = 2048 / d_head;  // of a piece: its O and dO are 8 KiB
    static constexpr int pieces = Br / rows;    // of a row tile
    static_assert(pieces == 4);  // two buffers twice: a tile begins with the barriers' phases as they were
    using Buffers = T[2][2][d_head / 64][rows][64];  // two pieces: each its O, then its dO, in panels of 64 columns

    Buffers &buffers;
    uint64_t *const full;  // [2]
    const FlashBackwardParams &params;
    const StatisticsMaps &maps;
    const Workspace &workspace;
    const Cuts<d_head> &cuts;
    const int lane;

    // Starts the copies of a piece: zeros past the end. Returns the log-sum-exp of the lane's row.
    __device__ __forceinline__ float load(int tile, int piece) {
        const int row_tiles = (params.Nq + Br - 1) / Br;
        const int head = tile / row_tiles, row = tile % row_tiles * Br + piece * rows;
        if (lane == 0) {
            const int batch = head / params.Hq, stage = piece % 2;
            ptx::mbarrier_arrive_expect_tx(&full[stage], sizeof(buffers[0]));
            ptx::tma_load(buffers[stage][0], &maps.O, &full[stage], 0, row, 0, head % params.Hq, batch);
            ptx::tma_load(buffers[stage][1], &maps.dO, &full[stage], 0, row, 0, head % params.Hq, batch);
        }
        return log_sum_exp_of(params, head, row + lane % rows);
    }

    // Computes the statistics of a piece that is there. A lane takes a row's 64 columns of a panel: 8 chunks of 16
    // bytes. It need not know which chunk TMA has put where, as O's and dO's are in the same order. Each lane begins
    // with another one, so that no two want the same banks at once.
    __device__ __forceinline__ void compute(int tile, int piece, float log_sum_exp) {
        const int row = lane % rows;
        const T *const O = buffers[piece % 2][0][lane / rows][row], *const dO = buffers[piece % 2][1][lane / rows][row];
        float D = 0.0f;
#pragma unroll 4
        for (int i = 0; i < 8; ++i) {
            const int chunk = (i + row) % 8;
            D = add_products(O + chunk * 8, dO + chunk * 8, D);
        }
        if constexpr (rows == 16) D += __shfl_xor_sync(0xffffffff, D, 16);
        if (lane < rows) store_statistics<Br>(workspace, tile, piece * rows + row, log_sum_exp, D);
        __syncwarp();  // every lane has read the piece, and has stored what it has of the tile
    }

    __device__ void run() {
        Counters *const counters = reinterpret_cast<Counters *>(workspace.counter);
        const int head_tiles = params.Hq / params.Hkv * ((params.Nq + Br - 1) / Br);  // of a head of K and V
        const int first = cuts.prepared * head_tiles, end = cuts.heads * head_tiles;
        if (first == end) return;
        int next = 0, done = 0;
        if (lane == 0) next = atomicAdd(&counters->next_tile, 1);
        int tile = first + __shfl_sync(0xffffffff, next, 0);
        float log_sum_exp = 0.0f, next_log_sum_exp = 0.0f;
        if (tile < end) log_sum_exp = load(tile, 0);
        while (tile < end) {
            if (lane == 0) next = atomicAdd(&counters->next_tile, 1);
            int loading = tile;
#pragma unroll 1
            for (int piece = 0; piece < pieces; ++piece) {
                if (piece == pieces - 1) loading = first + __shfl_sync(0xffffffff, next, 0);
                if (loading < end) next_log_sum_exp = load(loading, (piece + 1) % pieces);  // beside this piece's sums
                ptx::mbarrier_wait(&full[piece % 2], piece / 2);
                compute(tile, piece, log_sum_exp);
                log_sum_exp = next_log_sum_exp;
            }
            if (lane == 0) ptx::add_release(counters->added() + tile / head_tiles, 1);
            ++done;
            tile = loading;
        }
        if (lane == 0 && done > 0) ptx::add_release(&counters->tiles_there, done);
    }
};

// What one thread knows of the statistics that such warps compute.
struct StatisticsGate {
    bool all_there = false;

    // Waits for those of the unit's head, so that bulk copies may read them. Once all are there it asks no more.
    template <int Br, int d_head>
    __device__ void wait(const FlashBackwardParams &params, const Workspace &workspace, const Cuts<d_head> &cuts,
                         const Unit &unit) {
        const int head = unit.batch * params.Hkv + unit.kv_head;
        if (all_there || head < cuts.prepared) return;
        const int head_tiles = params.Hq / params.Hkv * ((params.Nq + Br - 1) / Br);
        Counters *const counters = reinterpret_cast<Counters *>(workspace.counter);
        const int *const added = counters->added() + head;
        int tiles_there = ptx::load_relaxed(&counters->tiles_there);
        while (ptx::load_relaxed(added) < head_tiles) __nanosleep(100);
        ptx::load_acquire(added);
        if (tiles_there == (cuts.heads - cuts.prepared) * head_tiles) {
            ptx::load_acquire(&counters->tiles_there);
            all_there = true;
        }
        ptx::fence_proxy_async_all();
    }
};

// ---- host ----

template <typename T, int d_head, int Br>
FlashStatus launch_first_statistics(const FlashBackwardParams &params, const Workspace &workspace,
                                    const Cuts<d_head> &cuts, cudaStream_t stream) {
    const int heads = cuts.prepared * (params.Hq / params.Hkv), batches = (heads + params.Hq - 1) / params.Hq;
    constexpr int block_rows = 256 / (d_head / 8);  // divides Br
    const int row_tiles = (params.Nq + Br - 1) / Br;
    const flash::TypedKernel<const FlashBackwardParams, const Workspace, const int> pass{
        first_statistics_kernel<T, d_head, Br>, dim3(row_tiles * (Br / block_rows), params.Hq, batches), 256};
    return flash::KernelQueue(stream).add(pass, params, workspace, heads).status();
}

template <typename T, int d_head, int Br>
FlashStatus make_statistics_maps(const FlashBackwardParams &params, StatisticsMaps &maps) {
    constexpr int rows = StatisticsWarp<T, d_head, Br>::rows;
    const flash::TensorShape queries{params.B, params.Hq, params.Nq, params.d_head, params.dtype};
    const FlashStatus status = flash::make_tensor_map("O", params.O, queries, rows, maps.O);
    return status == FLASH_OK ? flash::make_tensor_map("dO", params.dO, queries, rows, maps.dO) : status;
}
