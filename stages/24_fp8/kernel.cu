// FP8. Q, K, V and P are e4m3, one byte each, and the tensor cores multiply twice as many of them in a clock.
// wgmma takes bytes of V only transposed, so further warps transpose it. The tensor cores keep 13 bits of a sum of e4m3
// products, so the sum over the tiles is kept outside of them. e4m3 has too few powers of two for an optimistic
// maximum, so every tile takes its maximum first. P has so few bits that it needs no exponential function.
//
// As in stage shapes, one producer thread loads the tiles with TMA. The consumer warpgroups, 64 rows of Q each, do not
// stop between query tiles.

#include "accumulator.cuh"
#include "epilogue.cuh"
#include "launch.h"
#include "load.cuh"
#include "mask.cuh"
#include "numbers.cuh"
#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "tile_scheduler.cuh"
#include "wgmma.cuh"

template <int d_head>
struct Shape {
    static constexpr int Br = d_head == 64 ? 192 : 128;       // rows of Q (and of S, P, O) in a query tile
    static constexpr int kv_stages = d_head == 64 ? 4 : 3;    // buffers for tiles of K, of V and of V transposed
    static constexpr int transposers = d_head == 64 ? 2 : 4;  // the last warps of the block
    static constexpr int consumer_registers = d_head == 64 ? 160 : 224;  // 4 x 128 = 2 x 224 + 24 + 40 = 3 x 160 + 32
    static constexpr int producer_registers = 24;
    static constexpr int transposer_registers = d_head == 64 ? 32 : 40;
    static constexpr int loads = d_head == 64 ? 2 : 4;  // pieces of V that a transposer has under way
    static constexpr int columns = d_head + 8;  // of V, and eight columns of ones, whose products are the sums of P
    static constexpr bool maximum_under_PV = d_head == 128;  // it is taken while PV is under way, or after it
};
constexpr int threads = 512;  // consumers, producer and transposers
constexpr int Bc = 128;       // rows in a tile of K and of V
constexpr int q_stages = 2;   // buffers for tiles of Q

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <int d_head>
struct SharedStorage {
    static constexpr int Br = Shape<d_head>::Br, kv_stages = Shape<d_head>::kv_stages;
    e4m3 Q[q_stages][Br * d_head];                              // each [Br][d_head]
    e4m3 K[kv_stages][Bc * d_head];                             // each [Bc][d_head]
    e4m3 V[kv_stages][Bc * d_head];                             // the same
    e4m3 V_transposed[kv_stages][Shape<d_head>::columns * Bc];  // each [columns][Bc]
    __nv_bfloat16 O[Br / 16][d_head / 64][16][64];              // for each warp, read by the TMA store
    Pipeline<q_stages> Q_pipeline;
    Pipeline<kv_stages> K_pipeline, V_pipeline, transposed_pipeline;
    QueryTile query_tiles[q_stages];  // the query tile that each buffer of Q belongs to
    bool V_ends[kv_stages];           // whether the tile before this buffer of V was the block's last one
};

// ---- load ----

// The producer's thread. For each query tile that the scheduler gives this block, it writes down which one it is, for
// the consumers, and loads its Q and all of its tiles of K and V. After the last one it tells the transposers, too.
template <int d_head>
__device__ void produce(SharedStorage<d_head> &shared, const FlashParams &params, const TensorMaps &maps) {
    const TileScheduler<Shape<d_head>::Br, Bc> scheduler{params};
    PipelineState<Shape<d_head>::kv_stages> K_write, V_write;

    for (uint32_t done = 0;; ++done) {
        const PipelineState<q_stages> Q_write{done % q_stages, done / q_stages % 2};  // saves two registers
        shared.Q_pipeline.producer_acquire(Q_write);
        QueryTile &query_tile = shared.query_tiles[Q_write.stage];  // not in registers, there are few
        query_tile = scheduler.tile(done);
        uint64_t *const Q_full = &shared.Q_pipeline.full[Q_write.stage];
        if (!query_tile.valid()) {
            ptx::mbarrier_arrive(Q_full);  // no Q follows, but the consumers must see that there is no more work
            break;
        }
        load_tile(shared.Q[Q_write.stage], sizeof(shared.Q[0]), maps.Q, Q_full, query_tile.first_row, query_tile.head,
                  query_tile.batch);
#pragma unroll 1  // unrolled, the loop would need more registers than the producer has
        for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
            load_kv_tile<Bc>(shared.K, shared.K_pipeline, K_write, maps.K, query_tile, kv_tile);
            load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, maps.V, query_tile, kv_tile);
        }
    }
    shared.V_pipeline.producer_acquire(V_write);
    shared.V_ends[V_write.stage] = true;
    ptx::mbarrier_arrive(&shared.V_pipeline.full[V_write.stage]);  // no V follows
}

// ---- V transposed ----

// One warp's share of a tile of V, [Bc][d_head] to [d_head][Bc], in pieces of 32 rows by 16 columns, several of them
// under way together. Of 16 rows, row 2 c + e % 2 + 8 (e / 2) goes to position 4 c + e, as P's columns do.
template <int d_head>
__device__ void transpose_tile(const e4m3 *V, e4m3 *transposed, int transposer, int lane) {
    // The row of V that this lane addresses for ldmatrix, and the row of V transposed for stmatrix. Rows 0, 2, 4, 6, 9,
    // 11, 13 and 15 are written together, then the other eight: each time eight rows in different banks.
    const uint32_t from = ptx::shared_address(V) + lane * d_head + lane * d_head / 128 % (d_head / 16) * 16;
    const int row = 2 * (lane % 8) + ((lane % 8 >= 4) ^ lane / 8 % 2);
    const uint32_t to = ptx::shared_address(transposed) + row * Bc + (row % 8 * 16 ^ lane / 16 * 16);
    const uint32_t even = 0x6420, odd = 0x7531;  // a register has two rows by two columns: the bytes of one column
    const uint32_t one = lane < 16 ? even : odd, other = lane < 16 ? odd : even;
    constexpr int loads = Shape<d_head>::loads, transposers = Shape<d_head>::transposers;
#pragma unroll
    for (int group = 0; group < Bc / 32 / transposers; ++group) {
        const uint32_t rows = 32 * (transposer + group * transposers);
#pragma unroll
        for (int first = 0; first < d_head / 16; first += loads) {
            uint32_t pieces[loads][4];
#pragma unroll
            for (int i = 0; i < loads; ++i) ptx::ldmatrix_x4_trans(pieces[i], from + rows * d_head ^ (first + i) * 16);
#pragma unroll
            for (int i = 0; i < loads; ++i) {
                const uint32_t (&x)[4] = pieces[i];
                const uint32_t columns[4] = {__byte_perm(x[0], x[1], one), __byte_perm(x[0], x[1], other),
                                             __byte_perm(x[2], x[3], one), __byte_perm(x[2], x[3], other)};
                ptx::stmatrix_x4((to ^ rows) + (first + i) * 16 * Bc, columns);
            }
        }
    }
}

// A transposing warp. It follows the producer through all tiles of V and transposes its share of each.
template <int d_head>
__device__ void transpose_V(SharedStorage<d_head> &shared, int transposer, int lane) {
    PipelineState<Shape<d_head>::kv_stages> V_read;  // also the position in the queue of V transposed
    while (true) {
        shared.V_pipeline.consumer_wait(V_read);
        if (shared.V_ends[V_read.stage]) break;
        shared.transposed_pipeline.producer_acquire(V_read);
        transpose_tile<d_head>(shared.V[V_read.stage], shared.V_transposed[V_read.stage], transposer, lane);
        ptx::fence_proxy_async();  // makes this lane's bytes visible to wgmma
        __syncwarp();              // every lane has done so before lane 0 arrives
        if (lane == 0) ptx::mbarrier_arrive(&shared.transposed_pipeline.full[V_read.stage]);
        shared.V_pipeline.consumer_release(V_read, lane);
    }
}

// ---- S = QKᵀ and PV ----

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One consumer warpgroup's matrix products: the positions in the queues of Q, K and V, and how wgmma finds the tiles.
// Between the issue of a product and the wait for it, the code must not touch its registers.
template <int d_head>
struct Mainloop {
    static constexpr int Br = Shape<d_head>::Br, kv_stages = Shape<d_head>::kv_stages, columns = Shape<d_head>::columns;

    SharedStorage<d_head> &shared;
    const int lane;
    const uint64_t Q_descriptor, K_descriptor, V_descriptor;
    PipelineState<q_stages> Q_read;
    PipelineState<kv_stages> K_read, V_read;

    // wgmma reads all three along rows: of Q and K they are d_head bytes, of V transposed Bc bytes.
    __device__ Mainloop(SharedStorage<d_head> &shared, int warpgroup, int lane)
        : shared(shared),
          lane(lane),
          Q_descriptor(ptx::matrix_descriptor(shared.Q[0] + warpgroup * 64 * d_head, 0, 8 * d_head, d_head)),
          K_descriptor(ptx::matrix_descriptor(shared.K, 0, 8 * d_head, d_head)),
          V_descriptor(ptx::matrix_descriptor(shared.V_transposed, 0, 8 * Bc, Bc)) {}

    // Waits for the block's next query tile.
    __device__ __forceinline__ QueryTile wait_query_tile() {
        shared.Q_pipeline.consumer_wait(Q_read);
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
    __device__ void release_V() { shared.transposed_pipeline.consumer_release(V_read, lane); }

    // Issues S = QKᵀ for the next tile of K. One step is 32 columns: 32 bytes of a row.
    __device__ __forceinline__ void issue_QK(float (&S)[Bc / 2]) {
        shared.K_pipeline.consumer_wait(K_read);
        const uint64_t Q_tile = Q_descriptor + descriptor_offset(Q_read.stage * Br * d_head);
        const uint64_t K_tile = K_descriptor + descriptor_offset(K_read.stage * Bc * d_head);
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 32; ++k)
            ptx::wgmma_ss<e4m3, Bc>(S, Q_tile + descriptor_offset(k * 32), K_tile + descriptor_offset(k * 32), k > 0);
        ptx::wgmma_commit();
    }

    // Issues PV of one tile. One step is 32 columns of P and 32 bytes of each row of V transposed.
    __device__ __forceinline__ void issue_PV(float (&PV)[columns / 2], uint32_t (&P)[Bc / 32][4]) {
        const uint64_t V_tile = V_descriptor + descriptor_offset(V_read.stage * columns * Bc);
        ptx::wgmma_fence(PV, P);
#pragma unroll
        for (int k = 0; k < Bc / 32; ++k)
            ptx::wgmma_rs<e4m3, columns>(PV, P[k], V_tile + descriptor_offset(k * 32), k > 0);
        ptx::wgmma_commit();
    }

    // Waits for S. PV was issued after it and continues while S is masked.
    __device__ __forceinline__ void wait_S(float (&S)[Bc / 2]) {
        ptx::wgmma_wait<1>(S);
        release_K();
    }

    __device__ __forceinline__ void wait_PV(float (&PV)[columns / 2], uint32_t (&P)[Bc / 32][4]) {
        ptx::wgmma_wait<0>(PV, P);
        release_V();
    }

    __device__ __forceinline__ void wait_V() { shared.transposed_pipeline.consumer_wait(V_read); }
};

// ---- online softmax ----

// The online softmax of a thread's two rows: P = 2^(scale_log2 S - shift).
//
// Read as an integer, the byte of an e4m3 number p is 8 (7 + log2 p) at powers of two; between two of them it is up to
// 0.69 less. So the code computes this straight line, 0.4 lower, and rounds it to an integer, which is P's byte. P is
// off by up to 7.5 percent; rounding alone would be 6.25. Numbers below 2^-6 become smaller than they are, or 0.
struct OnlineSoftmax {
    static constexpr float lowest = -0x1p127f;  // below all scores, but finite: -infinity - shift is not NaN
    static constexpr float headroom = 8;        // P of the row's maximum is 2^headroom. e4m3 ends at 448
    static constexpr float byte = 0x1p-24f;     // the unit in which ptx::pack_bytes counts

    float scale_log2;  // exp(scale x) = 2^(scale_log2 x); each head of Q and of K has a scale of its own
    float shift[2];
    float row_sum[2];       // of P over all tiles whose PV is in O
    float rescale[2];       // the factor for O and for these sums before PV of the current P is added
    float next_rescale[2];  // the same for the next P

    // A new query tile has no maximum yet. `rescale` stays: O and P still belong to the previous query tile.
    __device__ __forceinline__ void begin(const FlashParams &params, const QueryTile &query_tile) {
        scale_log2 = params.scale * 1.44269504f * params.Q_scales[query_tile.batch * params.Hq + query_tile.head] *
                     params.K_scales[query_tile.batch * params.Hkv + query_tile.kv_head];
        shift[0] = shift[1] = lowest;
    }

    // Raises the shift to the new maximum. One instruction finds the largest of three integers, and floats from 0 up
    // have the order of their bits. Negative floats have the opposite order: if all scores of a row in a lane are
    // negative, its warp looks again.
    __device__ __forceinline__ void take_maximum(const float (&S)[Bc / 2]) {
        int bits[2] = {__float_as_int(S[0]), __float_as_int(S[2])};
#pragma unroll
        for (int x = 0; x < Bc / 2; x += 2)
            bits[x / 2 % 2] = max(max(bits[x / 2 % 2], __float_as_int(S[x])), __float_as_int(S[x + 1]));
        float maximum[2] = {__int_as_float(bits[0]), __int_as_float(bits[1])};
        if (__any_sync(0xffffffff, (bits[0] | bits[1]) < 0)) {
            maximum[0] = S[0];
            maximum[1] = S[2];
#pragma unroll
            for (int x = 0; x < Bc / 2; ++x) maximum[x / 2 % 2] = fmaxf(maximum[x / 2 % 2], S[x]);
        }
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float old_shift = shift[row];
            shift[row] = fmaxf(old_shift, row_reduce_max(maximum[row]) * scale_log2 - headroom);
            next_rescale[row] = ptx::exp2(old_shift - shift[row]);
        }
    }

    // Computes P. Of 16 columns a lane has four of each row, 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 with c = lane % 4. They
    // become the bytes of one register of wgmma's operand A, positions 4 c to 4 c + 3.
    __device__ __forceinline__ void exponentiate(const float (&S)[Bc / 2], uint32_t (&P)[Bc / 32][4]) {
        const float slope = 8 * byte * scale_log2, height = (8 * 7 - 0.4f) * byte;
        const float intercept[2] = {fmaf(-8 * byte, shift[0], height), fmaf(-8 * byte, shift[1], height)};
#pragma unroll
        for (int n = 0; n < Bc / 16; ++n)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float p[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float s = S[8 * n + 4 * (e / 2) + 2 * row + e % 2];
                    p[e] = fmaf(s, slope, intercept[row]);
                }
                P[n / 2][2 * (n % 2) + row] = ptx::pack_bytes(p[0], p[1], p[2], p[3]);
            }
        rescale[0] = next_rescale[0];
        rescale[1] = next_rescale[1];
    }

    // O = rescale O + PV, and the same of the sums, which are the products of the columns of ones.
    template <int d>
    __device__ __forceinline__ void add_PV(float (&O)[d / 2], const float (&PV)[d / 2 + 4]) {
#pragma unroll
        for (int x = 0; x < d / 2; ++x) O[x] = fmaf(O[x], rescale[x / 2 % 2], PV[x]);
        row_sum[0] = fmaf(row_sum[0], rescale[0], PV[d / 2]);
        row_sum[1] = fmaf(row_sum[1], rescale[1], PV[d / 2 + 2]);
    }

    __device__ __forceinline__ RowStatistics finalize(const float (&last_shift)[2], float V_scale) const {
        RowStatistics rows = {{last_shift[0], last_shift[1]}, {row_sum[0], row_sum[1]}};
        rows.inverse[0] = rows.sum[0] > 0.0f ? V_scale / rows.sum[0] : 0.0f;
        rows.inverse[1] = rows.sum[1] > 0.0f ? V_scale / rows.sum[1] : 0.0f;
        return rows;
    }
};

// Issues the next S, which belongs to this query tile or to the next one, and this tile's PV. Then computes what
// follows from them: O = rescale O + PV and the next P.
template <int d_head>
__device__ __forceinline__ void next_P(Mainloop<d_head> &mainloop, OnlineSoftmax &softmax, float (&S)[Bc / 2],
                                       uint32_t (&P)[Bc / 32][4], float (&PV)[d_head / 2 + 4], float (&O)[d_head / 2],
                                       const QueryTile &query_tile, int warp_row, int kv_tile, int Nkv) {
    mainloop.issue_QK(S);
    mainloop.issue_PV(PV, P);
    mainloop.wait_S(S);
    mask<Bc>(S, query_tile, warp_row, kv_tile, Nkv, mainloop.lane);
    if (Shape<d_head>::maximum_under_PV) softmax.take_maximum(S);
    mainloop.wait_PV(PV, P);
    softmax.add_PV<d_head>(O, PV);
    if (!Shape<d_head>::maximum_under_PV) softmax.take_maximum(S);
    mainloop.wait_V();
    softmax.exponentiate(S, P);
}

// ---- kernel ----

// grid: as many blocks as multiprocessors, or as query tiles if they are fewer
template <int d_head>
__global__ void __launch_bounds__(threads, 1)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    constexpr int consumers = Shape<d_head>::Br / 64, transposers = Shape<d_head>::transposers;
    constexpr int columns = Shape<d_head>::columns, kv_stages = Shape<d_head>::kv_stages;
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<d_head> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.Q_pipeline.init(4 * consumers);
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(transposers);
        for (int stage = 0; stage < kv_stages; ++stage) {
            ptx::mbarrier_init(&shared.transposed_pipeline.full[stage], transposers);
            ptx::mbarrier_init(&shared.transposed_pipeline.empty[stage], 4 * consumers);
            shared.V_ends[stage] = false;
        }
        ptx::fence_mbarrier_init();
    }
    for (int i = threadIdx.x; i < kv_stages * 8 * Bc / 4; i += threads) {  // the columns of ones, four bytes at a time
        uint8_t *ones = &shared.V_transposed[i / (8 * Bc / 4)][d_head * Bc].bits;
        reinterpret_cast<uint32_t *>(ones)[i % (8 * Bc / 4)] = 0x38383838;
    }
    ptx::fence_proxy_async();  // makes the ones visible to wgmma
    __syncthreads();           // no thread may wait at a barrier before it is initialised

    // The producer and the transposers give most of their registers back. At d_head 64 they share a warpgroup.
    if (warpgroup == 3) {
        ptx::setmaxnreg_dec<Shape<d_head>::transposer_registers>();
        if (consumers == 3 && threadIdx.x == 128 * consumers) produce(shared, params, maps);
        const int transposer = warp - (threads / 32 - transposers);
        if (transposer >= 0) transpose_V(shared, transposer, lane);
        return;
    }
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<Shape<d_head>::producer_registers>();
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<Shape<d_head>::consumer_registers>();
    Mainloop<d_head> mainloop(shared, warpgroup, lane);
    OnlineSoftmax softmax;
    float S[Bc / 2];         // [64, Bc] per warpgroup
    uint32_t P[Bc / 32][4];  // [64, Bc] per warpgroup
    float PV[columns / 2];   // [64, columns] per warpgroup: the product of one tile
    float O[d_head / 2];     // [64, d_head] per warpgroup: the sum over the tiles

    // The first S has no PV to overlap with. Every block has at least one query tile.
    QueryTile query_tile = mainloop.wait_query_tile();
    int warp_row = query_tile.first_row + warp * 16;
    int kv_tile = query_tile.kv_tiles - 1;
    softmax.begin(params, query_tile);
    mainloop.issue_QK(S);
    ptx::wgmma_wait<0>(S);
    mainloop.release_K();
    mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
    softmax.take_maximum(S);
    mainloop.wait_V();
    softmax.exponentiate(S, P);

    while (query_tile.valid()) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;
        softmax.row_sum[0] = softmax.row_sum[1] = 0.0f;
        while (kv_tile > 0) {
            --kv_tile;
            next_P(mainloop, softmax, S, P, PV, O, query_tile, warp_row, kv_tile, params.Nkv);
        }
        mainloop.release_Q();

        // The next query tile begins before this one is stored: its first S overlaps with this one's last PV.
        const QueryTile finished = query_tile;
        const float shift[2] = {softmax.shift[0], softmax.shift[1]};
        query_tile = mainloop.wait_query_tile();
        if (query_tile.valid()) {
            warp_row = query_tile.first_row + warp * 16;
            kv_tile = query_tile.kv_tiles - 1;
            softmax.begin(params, query_tile);
            next_P(mainloop, softmax, S, P, PV, O, query_tile, warp_row, kv_tile, params.Nkv);
        } else {
            mainloop.issue_PV(PV, P);
            mainloop.wait_PV(PV, P);
            softmax.add_PV<d_head>(O, PV);
        }
        const float V_scale = params.V_scales[finished.batch * params.Hkv + finished.kv_head];
        const RowStatistics rows = softmax.finalize(shift, V_scale);
        store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
        store_log_sum_exp(params, rows, finished, warp, lane);
    }
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the block must not end before TMA has read its shared memory
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "FP8",
                                  .min_compute = 90,
                                  .Br = Shape<128>::Br,  // the smaller
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true,  // sm_90a
                                  .e4m3 = true};

static flash::Launch plan(const FlashParams &params) {
    return flash::choose_d_head(params, [&]<int d_head>() {
        constexpr int Br = Shape<d_head>::Br;
        return flash::Launch{.kernel = flash_kernel<d_head>,
                             .grid = flash::persistent(params.Hq * params.B * ((params.Nq + Br - 1) / Br)),
                             .threads = threads,
                             .shared_bytes = sizeof(SharedStorage<d_head>),
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
