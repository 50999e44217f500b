// A tile scheduler. The grid has one block for each multiprocessor. A block works on one query tile after the
// other, and its producer loads the next query tile while the consumers still work on this one. The tile scheduler
// decides which query tile a block works on, and when. The producer asks it, and tells the consumers.
//
// A query tile is Br rows of Q: 64 for each consumer warpgroup, 16 for each warp. For one query tile the block walks
// over K and V in tiles of Bc = 128 rows, the last tile first. The producer is ahead of the consumers by as many tiles
// as there are buffers.

#include "accumulator.cuh"
#include "launch.h"
#include "numbers.cuh"
#include "online_softmax.cuh"
#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "wgmma.cuh"

constexpr int Bc = 128;       // rows in a tile of K and of V
constexpr int q_stages = 2;   // buffers for tiles of Q
constexpr int kv_stages = 2;  // buffers for tiles of K, and as many for tiles of V
constexpr int panel = 64;     // columns that TMA swizzles as one unit: 128 bytes of a row

// The block has a consumer warpgroup for each 64 rows of its query tile, and the producer. Br is 128, or 192 where the
// accumulators are small: at d_head 64.
template <int Br>
constexpr int threads = 128 * (Br / 64 + 1);

// Registers of a thread. A multiprocessor has 65,536: the block starts with 168 for each of 384 threads, or with 128
// for each of 512, and shares them out anew.
// 3 x 168 = 24 + 2 x 240, and 4 x 128 = 32 + 3 x 160.
template <int Br>
constexpr int producer_registers = Br == 192 ? 32 : 24;
template <int Br>
constexpr int consumer_registers = Br == 192 ? 160 : 240;

// ---- tile scheduler ----

// One unit of a block's work: Br rows of Q of one head, and the tiles of K and V that these rows see.
struct QueryTile {
    int batch, head, kv_head;
    int first_row;      // of Q and O
    int causal_offset;  // row i sees columns 0 to i + causal_offset
    int kv_tiles;       // of K and of V that the rows see; 0 means that there is no more work

    __device__ bool valid() const { return kv_tiles > 0; }
};

// Deals the query tiles to the blocks. Query tiles of one head follow each other, so that neighbouring blocks read the
// same K and V from L2.
//
// Causal query tiles differ in length, because the last rows see the most keys. A block therefore takes two at a time:
// the longest with the shortest, the second longest with the second shortest, and so on. All pairs of a head then see
// the same number of keys. A pair cannot be divided, so the last heads are dealt as single query tiles, the longest
// first. Every other round is dealt from the last block to the first. All blocks then finish at nearly the same time.
template <int Br, int Bc>
struct TileScheduler {
    const FlashParams &params;

    // The query tile that this block works on after `done` others.
    __device__ QueryTile tile(uint32_t done) const {
        const uint32_t row_tiles = uint32_t(params.Nq + Br - 1) / Br;
        const uint32_t heads = params.B * params.Hq;
        const uint32_t blocks = gridDim.x;
        const uint32_t heads_in_pairs = count_heads_in_pairs(row_tiles, heads * row_tiles / (2 * blocks));
        const uint32_t single_heads = heads - heads_in_pairs;

        const uint32_t pairs = heads_in_pairs * row_tiles / 2;
        const uint32_t own_pairs = pairs / blocks + (position_in_round(pairs / blocks) < pairs % blocks);
        uint32_t head_index;  // counts the heads of all batches
        uint32_t rank;        // 0 for the first query tile of a head: the longest, if causal
        if (done < 2 * own_pairs) {
            const uint32_t round = done / 2;
            const uint32_t number = 2 * (round * blocks + position_in_round(round)) + done % 2;
            head_index = number / row_tiles;
            rank = rank_in_pairs(number % row_tiles, row_tiles, head_index);
        } else {
            const uint32_t round = done - own_pairs;
            const uint32_t number = round * blocks + position_in_round(round) - pairs;
            if (number >= single_heads * row_tiles) return {};
            head_index = heads_in_pairs + (params.causal ? number % single_heads : number / row_tiles);
            rank = params.causal ? number / single_heads : number % row_tiles;
        }
        return describe(head_index, params.causal ? row_tiles - 1 - rank : rank);
    }

  private:
    // How many heads are dealt in pairs: as many as leave one round of single query tiles, three rounds of tall ones,
    // or none, if heads have fewer than eight query tiles. These numbers were measured to be the fastest. The number of
    // heads is even: if a head has an odd number of query tiles, its last one forms a pair with the first one of the
    // next head.
    __device__ uint32_t count_heads_in_pairs(uint32_t row_tiles, uint32_t rounds_of_pairs) const {
        const uint32_t single_rounds = row_tiles < 8 ? 0 : Br > 128 ? 3 : 1;
        if (!params.causal || rounds_of_pairs <= single_rounds) return 0;
        return (rounds_of_pairs - single_rounds) * 2 * gridDim.x / row_tiles / 2 * 2;
    }

    // This block's position in a round. A round deals one query tile, or one pair, to every block.
    __device__ uint32_t position_in_round(uint32_t round) const {
        const bool backwards = params.causal && round % 2 == 1;
        return backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }

    // The order within a head: the longest, the shortest, the second longest, and so on. Every other head goes
    // backwards, so that a pair that spans two heads consists of two query tiles of similar length.
    __device__ static uint32_t rank_in_pairs(uint32_t number, uint32_t row_tiles, uint32_t head_index) {
        const uint32_t in_turn = head_index % 2 == 1 ? row_tiles - 1 - number : number;
        return in_turn % 2 == 1 ? row_tiles - 1 - in_turn / 2 : in_turn / 2;
    }

    __device__ QueryTile describe(uint32_t head_index, uint32_t row_tile) const {
        QueryTile tile;
        tile.batch = head_index / params.Hq;
        tile.head = head_index % params.Hq;
        tile.kv_head = tile.head / (params.Hq / params.Hkv);
        tile.first_row = row_tile * Br;
        tile.causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
        const int columns = min(params.Nkv, tile.first_row + Br + tile.causal_offset);
        tile.kv_tiles = max(columns + Bc - 1, Bc) / Bc;  // rows that see no key get one fully masked tile
        return tile;
    }
};

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T Q[q_stages][Br * d_head];   // each [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head];  // each [d_head / panel][Bc][panel]
    T V[kv_stages][Bc * d_head];  // the same
    Pipeline<q_stages> Q_pipeline;
    Pipeline<kv_stages> K_pipeline, V_pipeline;
    QueryTile query_tiles[q_stages];  // the query tile that each buffer of Q belongs to
};

// ---- load ----

// Starts the load of one tile and returns without waiting for it. The barrier `full` completes its phase when `bytes`
// bytes have arrived. Rows past the end of the tensor arrive as zeros.
__device__ void load_tile(void *tile, int bytes, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// Loads a tile into the next buffer of K, or of V, once the consumers have read the tile that the buffer holds.
template <typename T, int elements>
__device__ void load_kv_tile(T (&buffers)[kv_stages][elements], Pipeline<kv_stages> &pipeline,
                             PipelineState<kv_stages> &state, const CUtensorMap &map, const QueryTile &query_tile,
                             int kv_tile) {
    pipeline.producer_acquire(state);
    load_tile(buffers[state.stage], elements * sizeof(T), map, &pipeline.full[state.stage], kv_tile * Bc,
              query_tile.kv_head, query_tile.batch);
    state.advance();
}

// The producer's thread. For each query tile that the scheduler gives this block, it writes down which one it is, for
// the consumers, and loads its Q and all tiles of K and V that it needs. The pipelines do not know where a query tile
// ends, so the producer does not wait there.
template <typename T, int d_head, int Br>
__device__ void produce(SharedStorage<T, d_head, Br> &shared, const FlashParams &params, const TensorMaps &maps) {
    const TileScheduler<Br, Bc> scheduler{params};
    PipelineState<q_stages> Q_write;
    PipelineState<kv_stages> K_write, V_write;
    for (uint32_t done = 0;; ++done) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const QueryTile query_tile = scheduler.tile(done);
        shared.query_tiles[Q_write.stage] = query_tile;
        uint64_t *const Q_full = &shared.Q_pipeline.full[Q_write.stage];
        if (!query_tile.valid()) {
            ptx::mbarrier_arrive(Q_full);  // no Q follows, but the consumers must see that there is no more work
            break;
        }
        load_tile(shared.Q[Q_write.stage], sizeof(shared.Q[0]), maps.Q, Q_full, query_tile.first_row, query_tile.head,
                  query_tile.batch);
        Q_write.advance();
        for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
            load_kv_tile(shared.K, shared.K_pipeline, K_write, maps.K, query_tile, kv_tile);
            load_kv_tile(shared.V, shared.V_pipeline, V_write, maps.V, query_tile, kv_tile);
        }
    }
}

// ---- S = QKᵀ and O += PV ----

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One consumer warpgroup's matrix products. It knows the position in the queues of Q, K and V and how wgmma finds the
// tiles. The register arrays S, P and O belong to the kernel function and are passed in. Between the issue of a product
// and the wait for it, the code must not touch the product's registers.
template <typename T, int d_head, int Br>
struct Mainloop {
    static constexpr int row_bytes = panel * sizeof(T);
    static constexpr int Q_bytes = Br * d_head * sizeof(T), KV_bytes = Bc * d_head * sizeof(T);

    SharedStorage<T, d_head, Br> &shared;
    const int lane;
    const uint64_t Q_descriptor, K_descriptor, V_descriptor;
    PipelineState<q_stages> Q_read;
    PipelineState<kv_stages> K_read, V_read;
    uint64_t Q_tile;  // the descriptor of the current query tile

    // wgmma reads the warpgroup's 64 rows of Q and the rows of K along d_head. It reads V across the panels, so V's
    // descriptor also holds the distance from one panel to the next. 8 rows of a panel are 1,024 bytes.
    __device__ Mainloop(SharedStorage<T, d_head, Br> &shared, int warp, int lane)
        : shared(shared),
          lane(lane),
          Q_descriptor(ptx::matrix_descriptor(shared.Q[0] + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          K_descriptor(ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes)),
          V_descriptor(ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes)) {}

    // Waits for the block's next query tile and its Q.
    __device__ __forceinline__ QueryTile wait_query_tile() {
        shared.Q_pipeline.consumer_wait(Q_read);
        Q_tile = Q_descriptor + descriptor_offset(Q_read.stage * Q_bytes);
        QueryTile query_tile = shared.query_tiles[Q_read.stage];
        // All lanes read the same values. The shuffles tell the compiler so: branches on them then do not diverge.
        query_tile.first_row = __shfl_sync(0xffffffff, query_tile.first_row, 0);
        query_tile.causal_offset = __shfl_sync(0xffffffff, query_tile.causal_offset, 0);
        query_tile.kv_tiles = __shfl_sync(0xffffffff, query_tile.kv_tiles, 0);
        __syncwarp();  // every lane has read it before lane 0 releases the buffer
        return query_tile;
    }

    __device__ void release_Q() { shared.Q_pipeline.consumer_release(Q_read, lane); }
    __device__ void release_K() { shared.K_pipeline.consumer_release(K_read, lane); }
    __device__ void release_V() { shared.V_pipeline.consumer_release(V_read, lane); }

    // Issues S = QKᵀ for the next tile of K. One step is 16 columns: 32 bytes of a row, a quarter of a panel.
    __device__ __forceinline__ void issue_QK(float (&S)[Bc / 2]) {
        shared.K_pipeline.consumer_wait(K_read);
        const uint64_t K_tile = K_descriptor + descriptor_offset(K_read.stage * KV_bytes);
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t K_step = K_tile + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t Q_step = Q_tile + descriptor_offset(k / 4 * Br * row_bytes) + step;
            ptx::wgmma_ss<T, Bc>(S, Q_step, K_step, k > 0);
        }
        ptx::wgmma_commit();
    }

    // Issues O += PV for the next tile of V. One step is 16 columns of P and 16 rows of V.
    __device__ __forceinline__ void issue_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        shared.V_pipeline.consumer_wait(V_read);
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            const uint64_t V_rows = descriptor_offset(V_read.stage * KV_bytes) + descriptor_offset(k * 16 * row_bytes);
            ptx::wgmma_rs<T, d_head>(O, P[k], V_descriptor + V_rows, true);
        }
        ptx::wgmma_commit();
    }

    // Each waits for its product. The warp has then read the tile and releases its buffer.
    __device__ __forceinline__ void wait_S(float (&S)[Bc / 2]) {
        ptx::wgmma_wait<0>(S);
        release_K();
    }
    __device__ __forceinline__ void wait_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        ptx::wgmma_wait<0>(O, P);
        release_V();
    }
};

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
    __syncwarp();  // after a branch that lanes take differently, the compiler needs to know that they have converged
}

// ---- kernel ----

// grid: as many blocks as multiprocessors, or as query tiles if they are fewer
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads<Br>, 1)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    constexpr int consumers = Br / 64;
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, Br> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.Q_pipeline.init(4 * consumers);
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One of its threads does all the work.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers<Br>>();
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers<Br>>();
    Mainloop<T, d_head, Br> mainloop(shared, warp, lane);
    float S[Bc / 2];         // [64, Bc] per warpgroup
    uint32_t P[Bc / 16][4];  // [64, Bc] per warpgroup
    float O[d_head / 2];     // [64, d_head] per warpgroup

    while (true) {
        const QueryTile query_tile = mainloop.wait_query_tile();
        if (!query_tile.valid()) break;
        const int warp_row = query_tile.first_row + warp * 16;
        OnlineSoftmax<T, Bc> softmax{params.scale * 1.44269504f};
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;

        for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
            mainloop.issue_QK(S);
            mainloop.wait_S(S);
            mask(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            softmax.exponentiate(S);
            softmax.rescale_O(O);
            softmax.round_P(S, P);
            mainloop.issue_PV(O, P);
            mainloop.wait_PV(O, P);
        }
        mainloop.release_Q();

        const RowStatistics rows = softmax.finalize();
        store_O<T, d_head>(params, O, rows, query_tile, warp, lane);
        store_log_sum_exp(params, rows, query_tile, warp, lane);
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Tile scheduler",
                                  .min_compute = 90,
                                  .Br = 128,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

template <typename T, int d_head, int Br>
static flash::Launch plan_for(const FlashParams &params) {
    return {.kernel = flash_kernel<T, d_head, Br>,
            .grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br)),
            .threads = threads<Br>,
            .shared_bytes = sizeof(SharedStorage<T, d_head, Br>),
            .Q_box_rows = Br,
            .KV_box_rows = Bc};
}

// At d_head 64 a third consumer pays where no query tile is cut short by a mask. At d_head 128 it has no registers.
static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        if constexpr (d_head == 64) {
            if (!params.causal) return plan_for<T, 64, 192>(params);
        }
        return plan_for<T, d_head, 128>(params);
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
