// Mistakes with what Hopper's asynchronous units read, and with arrivals that hand nothing over, one in each kernel,
// and the same kernel without it.
//
//     faults NAME 0|1        runs NAME's kernel with clusters of two blocks, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../clusters/cluster.cuh"
#include "../fault_run.h"
#include "../tensor_map.h"

// clang-format off
#undef COMMIT
#undef WAIT
#undef STORE
#include "../wgmma/wgmma.h"

#define KERNEL(name) template <bool mended> __global__ void __launch_bounds__(128) \
    name(float *out, const uint4 *in, const __grid_constant__ CUtensorMap map)
#define TILES __shared__ alignas(1024) uint4 a[kBytesA / 16], b[128]; const unsigned t = threadIdx.x; float d[4] = {}; (void)d; (void)b; out += 512 * blockIdx.x;
#define FILL_A a[t] = in[t];
#define FILL_B b[t] = in[t];
#define READY FENCE_PROXY(); __syncthreads();
#define STORE for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];
#define STORE_BULK(to, from, bytes) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(SHARED(from)), "r"(bytes) : "memory")
#define ADD_BULK(to, from, bytes) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(SHARED(from)), "r"(bytes) : "memory")
#define ADD_BOX(map, x, y, from) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(SHARED(from)) : "memory")
#define STORED() asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory")
#define CLUSTER __shared__ alignas(128) unsigned mine[128]; __shared__ alignas(8) uint64_t bar; \
    const unsigned t = threadIdx.x, peer = rank_of_block() ^ 1, i = blockIdx.x * 128 + t; (void)mine; (void)bar; (void)peer; (void)i;
#define INIT_BAR() if (t == 0) INIT(&bar, 1);
#define ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define WAIT_CLUSTER() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define FENCE_OF(scope) asm volatile("fence.acq_rel." scope ";" ::: "memory")
#define ARRIVE_THERE_RELAXED(bar) asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory")
#define LOAD_THERE(value, at) unsigned value; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory")
// B with 8 rows of `row` bytes from `tile` on, swizzled as `mode` says.
#define SWIZZLED(tile, row, mode, base) (uint64_t((SHARED(tile) & 0x3ffff) >> 4) | 1ull << 16 | uint64_t(8 * row >> 4) << 32 | uint64_t(base) << 49 | uint64_t(mode) << 62)

// ---- operands that nobody has written ----

KERNEL(rows_of_a_unwritten) {
    TILES
    if (t < 64) a[t] = in[t];  // of rows 0 to 31
    FILL_B
    READY
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! rows_of_a_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
    COMMIT();
    WAIT(0);
    if (!mended || t < 64) STORE  //~ rows_of_a_unwritten
}

KERNEL(columns_of_b_unwritten) {
    TILES
    FILL_A
    if (t < 16 && t % 8 < 4) b[t] = in[t];  // of columns 0 to 3
    READY
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! columns_of_b_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
    COMMIT();
    WAIT(0);
    for (int i = 0; i < 4; ++i) d[i] = !mended || t % 4 < 2 ? d[i] : 0;
    STORE  //~ columns_of_b_unwritten
}

KERNEL(stored_unwritten) {
    TILES
    if (mended || t < 64) FILL_A
    READY
    if (t == 0) {
        STORE_BULK(out, a, 2048);  //! stored_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
        STORED();
    }
}

KERNEL(added_unwritten) {
    TILES
    if (mended || t != 77) FILL_A
    READY
    if (t == 0) {
        ADD_BULK(out, a, 2048);  //! added_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
        STORED();
    }
}

KERNEL(box_of_unwritten) {  // rows 0 to 7 of the box are there, and mended no other lies inside the tensor
    TILES
    if (t < 64) FILL_A
    READY
    if (t == 0 && blockIdx.x == 0) {
        STORE_BOX(&map, 0, mended ? 24 : 0, a);  //! box_of_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
        STORED();
    }
}

KERNEL(box_added_unwritten) {
    TILES
    if (t < 64) FILL_A
    READY
    if (t == 0 && blockIdx.x == 0) {
        ADD_BOX(&map, 0, mended ? 24 : 0, a);  //! box_added_unwritten uninitialized_shared: shared memory that no thread has written | is stored to global memory
        STORED();
    }
}

// ---- tiles that do not begin where the swizzle's pattern does ----

KERNEL(one_row_off_128) {
    TILES
    FILL_A
    FILL_B
    READY
    FENCE();
    MMA(d, describe(a), SWIZZLED(b + 8, 128, 1, mended ? 1 : 0), 1);  //! one_row_off_128 misaligned: descriptor of B | in row 1 of the 8 rows of 128 bytes | base offset (bits 49 to 51) says 0 | a multiple of 1024 bytes
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(two_rows_off_64) {
    TILES
    FILL_A
    FILL_B
    READY
    FENCE();
    MMA(d, describe(a), SWIZZLED(b + 8, 64, 2, mended ? 1 : 0), 1);  //! two_rows_off_64 misaligned: in row 2 of the 8 rows of 64 bytes | a multiple of 512 bytes
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(four_rows_off_32) {
    TILES
    FILL_A
    FILL_B
    READY
    FENCE();
    MMA(d, describe(a), SWIZZLED(b + (mended ? 16 : 8), 32, 3, 0), 1);  //! four_rows_off_32 misaligned: in row 4 of the 8 rows of 32 bytes | a multiple of 256 bytes
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(base_offset_of_another_row) {  // mended: a step of 32 bytes along k, in the pattern's first row
    TILES
    FILL_A
    FILL_B
    READY
    FENCE();
    MMA(d, describe(a), SWIZZLED(b + 2, 128, 1, mended ? 0 : 3), 1);  //! base_offset_of_another_row misaligned: its base offset 3 says something else
    COMMIT();
    WAIT(0);
    STORE
}

// ---- the peer's memory ----

KERNEL(peer_copies_what_nobody_wrote) {
    CLUSTER
    if (mended || t < 64) mine[t] = t;
    INIT_BAR()
    fence_init();
    fence_proxy();
    cluster_sync();
    __shared__ alignas(128) unsigned got[128];
    if (t == 0) {
        expect(&bar, 512);
        copy_to_peer(mapa(got, peer), mine, 512, mapa(&bar, peer));  //! peer_copies_what_nobody_wrote uninitialized_shared: shared memory that no thread has written | is stored to global memory
    }
    wait(&bar, 0);
    out[i] = got[t];  //~ peer_copies_what_nobody_wrote
    cluster_sync();
}

KERNEL(peer_adds_what_nobody_wrote) {
    CLUSTER
    __shared__ alignas(128) unsigned got[128];
    if (mended || t < 64) mine[t] = t;
    got[t] = 0;
    INIT_BAR()
    fence_init();
    fence_proxy();
    cluster_sync();
    if (t == 0) {
        expect(&bar, 512);
        add_to_peer(mapa(got, peer), mine, 512, mapa(&bar, peer));  //! peer_adds_what_nobody_wrote uninitialized_shared: shared memory that no thread has written | is stored to global memory
    }
    wait(&bar, 0);
    out[i] = got[t];  //~ peer_adds_what_nobody_wrote
    cluster_sync();
}

KERNEL(generic_read_of_what_the_peer_never_wrote) {
    CLUSTER
    if (mended || blockIdx.x % 2 == 0) mine[t] = t;
    cluster_sync();
    out[i] = *map_generic(mine + t, peer);  //! generic_read_of_what_the_peer_never_wrote uninitialized_shared: shared memory that no thread has written
    cluster_sync();
}

KERNEL(generic_read_after_the_peer_left) {
    CLUSTER
    mine[t] = t;
    cluster_sync();
    out[i] = *map_generic(mine + t, peer);  //! generic_read_after_the_peer_left cluster: may have exited by then: nothing orders it before that exit or which has exited
    ARRIVE_RELAXED();
    WAIT_CLUSTER();
    if constexpr (mended) cluster_sync();
}

// ---- arrivals that are relaxed ----

KERNEL(init_without_fence) {
    CLUSTER
    INIT_BAR()  //~ init_without_fence
    if constexpr (mended) fence_init();
    __syncthreads();
    ARRIVE_RELAXED();
    WAIT_CLUSTER();
    const unsigned there = mapa(&bar, peer);
    if (t == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");  //! init_without_fence mbarrier: nothing orders the two. No cluster barrier
    wait(&bar, 0);
    out[i] = t;
    cluster_sync();
}

KERNEL(fence_of_inits_speaks_for_no_data) {
    CLUSTER
    mine[t] = t;  //! fence_of_inits_speaks_for_no_data shared_race: nothing orders the two
    if constexpr (mended) FENCE_OF("cluster"); else fence_init();
    ARRIVE_RELAXED();
    WAIT_CLUSTER();
    LOAD_THERE(value, mapa(mine + t, peer));  //! fence_of_inits_speaks_for_no_data
    out[i] = value;
    cluster_sync();
}

KERNEL(fence_of_the_block_alone) {
    CLUSTER
    mine[t] = t;  //! fence_of_the_block_alone shared_race: nothing orders the two
    if constexpr (mended) __threadfence(); else __threadfence_block();
    ARRIVE_RELAXED();
    WAIT_CLUSTER();
    LOAD_THERE(value, mapa(mine + t, peer));  //! fence_of_the_block_alone
    out[i] = value;
    cluster_sync();
}

KERNEL(fence_before_the_write) {
    CLUSTER
    if constexpr (!mended) FENCE_OF("cluster");
    mine[t] = t;  //! fence_before_the_write shared_race: nothing orders the two
    __syncthreads();
    if constexpr (mended) FENCE_OF("cluster");
    ARRIVE_RELAXED();
    WAIT_CLUSTER();
    LOAD_THERE(value, mapa(mine + (t ^ 1), peer));  //! fence_before_the_write
    out[i] = value;
    cluster_sync();
}

KERNEL(relaxed_arrival_at_the_peers_mbarrier) {
    CLUSTER
    if (t == 0) INIT(&bar, 128);
    fence_init();
    cluster_sync();
    const unsigned there = mapa(&bar, peer);
    mine[t] = t;  //! relaxed_arrival_at_the_peers_mbarrier shared_race: nothing orders the two
    if constexpr (mended) FENCE_OF("cluster");
    ARRIVE_THERE_RELAXED(there);
    wait(&bar, 0);
    LOAD_THERE(value, mapa(mine + t, peer));  //! relaxed_arrival_at_the_peers_mbarrier
    out[i] = value;
    cluster_sync();
}

#define CASE(name) {#name, {name<false>, name<true>}}
// clang-format on
using Kernel = void (*)(float *, const uint4 *, const CUtensorMap);
const struct {
    const char *name;
    Kernel kernel[2];
} cases[] = {
    CASE(rows_of_a_unwritten),
    CASE(columns_of_b_unwritten),
    CASE(stored_unwritten),
    CASE(added_unwritten),
    CASE(box_of_unwritten),
    CASE(box_added_unwritten),
    CASE(one_row_off_128),
    CASE(two_rows_off_64),
    CASE(four_rows_off_32),
    CASE(base_offset_of_another_row),
    CASE(peer_copies_what_nobody_wrote),
    CASE(peer_adds_what_nobody_wrote),
    CASE(generic_read_of_what_the_peer_never_wrote),
    CASE(generic_read_after_the_peer_left),
    CASE(init_without_fence),
    CASE(fence_of_inits_speaks_for_no_data),
    CASE(fence_of_the_block_alone),
    CASE(fence_before_the_write),
    CASE(relaxed_arrival_at_the_peers_mbarrier),
};

int main(int argc, char **argv) {
    uint4 *in;
    float *out;
    cudaMalloc(&in, 4096);
    cudaMalloc(&out, 4096);
    const CUtensorMap map = map_of(out, 32, 32, 128, 32, 16);  // rows of 128 bytes
    cudaLaunchConfig_t config{};
    config.gridDim = 2;
    config.blockDim = 128;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, 4096, [&](bool numbers) { put_numbers(in, 4096, numbers); },
                [&](bool mended) { cudaLaunchKernelEx(&config, it.kernel[mended], out, (const uint4 *)in, map); });
    return 2;
}
