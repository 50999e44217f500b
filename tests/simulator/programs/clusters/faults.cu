// Mistakes with clusters, one in each kernel, and the same kernel without it.
//
//     faults NAME 0|1        runs NAME's kernel with clusters of two blocks, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "cluster.cuh"

// clang-format off
#define KERNEL(name) template <bool mended> __global__ void name(unsigned *out, const unsigned *in)
#define BEGIN __shared__ alignas(128) unsigned mine[64]; __shared__ uint64_t bar; \
    const unsigned t = threadIdx.x, rank = rank_of_block(), peer = rank ^ 1, i = blockIdx.x * 64 + t; (void)mine; (void)bar; (void)peer; (void)i;
// Macros, so that each has the line of its kernel.
#define ARRIVE_CLUSTER() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define ARRIVE_CLUSTER_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define WAIT_CLUSTER() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define SYNC_CLUSTER() asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define MAP(to, p, r) unsigned to; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared(p)), "r"(r))
#define LOAD(value, at) unsigned value; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory")
#define STORE(at, value) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory")
#define INIT(b, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(b)), "r"(count) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define ARRIVE_AT(at) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory")
#define EXPECT(b, bytes) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(b)), "r"(bytes) : "memory")
#define WAIT_AT(at, parity) asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(at), "r"(parity) : "memory")
#define WAIT(b, parity) WAIT_AT(shared(b), parity)
#define STORE_ASYNC(at, value, b) asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(at), "r"(value), "r"(b) : "memory")

KERNEL(before_the_peer_started) {
    BEGIN
    if constexpr (mended) SYNC_CLUSTER();
    MAP(there, mine + t, peer);
    STORE(there, t);  //! before_the_peer_started cluster: uses the shared memory of block | which may not have started by then | at no cluster barrier
    SYNC_CLUSTER();
    out[i] = mine[t];
}

KERNEL(after_the_peer_exited) {
    BEGIN
    mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + t, peer);
    LOAD(value, there);  //! after_the_peer_exited cluster: which may have exited by then: nothing orders it before that exit or which has exited
    out[i] = value;
    if constexpr (mended) SYNC_CLUSTER();
}

KERNEL(one_arrival_short_of_the_exit) {  // the barrier before the exit is that of one block alone
    BEGIN
    mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + t, 0);
    if (rank == 1) {
        LOAD(value, there);  //! one_arrival_short_of_the_exit cluster: which may have exited by then or which has exited
        out[i] = value;
    }
    __syncthreads();
    if constexpr (mended) SYNC_CLUSTER();
}

KERNEL(arrival_after_the_peer_exited) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
    }
    SYNC_CLUSTER();
    MAP(there, &bar, 0);
    if (rank == 1 && t == 0) ARRIVE_AT(there);  //! arrival_after_the_peer_exited cluster: which may have exited by then or which has exited
    if (mended && rank == 0) WAIT(&bar, 0);
    out[i] = t;
}

KERNEL(block_barrier_for_two_blocks) {
    BEGIN
    SYNC_CLUSTER();
    mine[t] = t;  //! block_barrier_for_two_blocks shared_race: nothing orders the two. No cluster barrier (barrier.cluster.arrive and .wait) and no arrival at an mbarrier orders them | of the cluster's block
    if constexpr (mended) SYNC_CLUSTER(); else __syncthreads();
    MAP(there, mine + t, peer);
    LOAD(value, there);  //! block_barrier_for_two_blocks
    out[i] = value;
    SYNC_CLUSTER();
}

KERNEL(two_blocks_write) {
    BEGIN
    SYNC_CLUSTER();
    MAP(there, mine + (mended ? rank * 32 + t % 32 : t), 0);
    if (!mended || t < 32) STORE(there, 1000 * rank + t);  //! two_blocks_write shared_race: wrote at | nothing orders the two
    SYNC_CLUSTER();
    out[i] = rank ? 0 : mine[t];
    SYNC_CLUSTER();
}

KERNEL(rewritten_while_the_peer_reads) {
    BEGIN
    mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + t, peer);
    LOAD(value, there);  //! rewritten_while_the_peer_reads shared_race: nothing orders the two
    if constexpr (mended) SYNC_CLUSTER();
    mine[t] = value + 1;  //! rewritten_while_the_peer_reads
    SYNC_CLUSTER();
    out[i] = mine[63 - t];
}

KERNEL(relaxed_arrival_hands_nothing_over) {
    BEGIN
    SYNC_CLUSTER();
    mine[t] = t;  //! relaxed_arrival_hands_nothing_over shared_race: nothing orders the two
    if constexpr (mended) ARRIVE_CLUSTER(); else ARRIVE_CLUSTER_RELAXED();
    WAIT_CLUSTER();
    MAP(there, mine + t, peer);
    LOAD(value, there);  //! relaxed_arrival_hands_nothing_over
    out[i] = value;
    SYNC_CLUSTER();
}

KERNEL(arrives_twice) {
    BEGIN
    ARRIVE_CLUSTER();  //~ arrives_twice
    if constexpr (mended) WAIT_CLUSTER();
    ARRIVE_CLUSTER();  //! arrives_twice cluster: arrives again at the cluster's barrier | and has executed no barrier.cluster.wait since
    WAIT_CLUSTER();
    out[i] = t;
}

KERNEL(waits_without_arrival) {
    BEGIN
    if constexpr (mended) ARRIVE_CLUSTER();
    WAIT_CLUSTER();  //! waits_without_arrival cluster: and has executed no barrier.cluster.arrive
    out[i] = t;
}

KERNEL(one_block_waits_elsewhere) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
    }
    SYNC_CLUSTER();
    MAP(there, &bar, 0);
    if (!mended && rank == 0) WAIT(&bar, 0);  //! one_block_waits_elsewhere deadlock: waits at the cluster's barrier, where 64 of 128 threads have arrived | block 1 of the cluster
    ARRIVE_CLUSTER();
    WAIT_CLUSTER();  //~ one_block_waits_elsewhere
    if (rank == 1 && t == 0) ARRIVE_AT(there);
    if (mended && rank == 0) WAIT(&bar, 0);
    SYNC_CLUSTER();
    out[i] = t;
}

KERNEL(announced_at_the_wrong_block) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);  //! announced_at_the_wrong_block deadlock: nobody can complete phase 0 | outstanding
        FENCE_INIT();
    }
    SYNC_CLUSTER();
    MAP(there, mine + t, 1);
    MAP(bar_there, &bar, 1);
    if (rank == (mended ? 1 : 0) && t == 0) EXPECT(&bar, 64 * 4);
    if (rank == 0) STORE_ASYNC(there, t, bar_there);
    if (rank == 1) WAIT(&bar, 0);  //! announced_at_the_wrong_block
    out[i] = rank ? mine[t] : 0;
    SYNC_CLUSTER();
}

KERNEL(rank_that_is_not_there) {
    BEGIN
    mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + t, mended ? peer : 2);  //! rank_that_is_not_there cluster: names block 2 of a cluster of 2 blocks: ranks are 0 to 1
    LOAD(value, there);
    out[i] = value;
    SYNC_CLUSTER();
}

KERNEL(wait_at_the_peers_mbarrier) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
    }
    SYNC_CLUSTER();
    MAP(there, &bar, peer);
    if (t == 0) ARRIVE_AT(there);
    if constexpr (mended) WAIT(&bar, 0); else WAIT_AT(there, 0);  //! wait_at_the_peers_mbarrier invalid_address: an address in the shared memory of the cluster's block | which this instruction cannot use
    out[i] = t;
    SYNC_CLUSTER();
}

KERNEL(init_not_awaited_by_the_peer) {
    BEGIN
    SYNC_CLUSTER();
    if (t == 0) {
        INIT(&bar, 1);  //~ init_not_awaited_by_the_peer
        FENCE_INIT();
    }
    if constexpr (mended) SYNC_CLUSTER(); else __syncthreads();
    MAP(there, &bar, peer);
    if (t == 0) ARRIVE_AT(there);  //! init_not_awaited_by_the_peer mbarrier: nothing orders the two. No cluster barrier or which no mbarrier.init has initialised
    WAIT(&bar, 0);
    out[i] = t;
    SYNC_CLUSTER();
}

KERNEL(data_and_mbarrier_apart) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
        EXPECT(&bar, 64 * 4);
    }
    SYNC_CLUSTER();
    MAP(there, mine + t, peer);
    MAP(bar_there, &bar, mended ? peer : rank);
    STORE_ASYNC(there, t, bar_there);  //! data_and_mbarrier_apart cluster: and completes to an mbarrier of block | both must be of one block
    WAIT(&bar, 0);
    out[i] = mine[t];
    SYNC_CLUSTER();
}

KERNEL(past_the_peers_end) {
    BEGIN
    mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + (mended ? t : t + 4096), peer);
    LOAD(value, there);  //! past_the_peers_end out_of_bounds: past the end of the block's
    out[i] = value;
    SYNC_CLUSTER();
}

KERNEL(nobody_wrote_there) {
    BEGIN
    if (mended || rank == 0) mine[t] = t;
    SYNC_CLUSTER();
    MAP(there, mine + t, 1);
    LOAD(value, there);  //! nobody_wrote_there uninitialized_shared: shared memory that no thread has written
    out[i] = value;  //~ nobody_wrote_there
    SYNC_CLUSTER();
}

KERNEL(asynchronous_store_not_awaited) {
    BEGIN
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
        EXPECT(&bar, 64 * 4);
    }
    SYNC_CLUSTER();
    MAP(there, mine + t, peer);
    MAP(bar_there, &bar, peer);
    STORE_ASYNC(there, t, bar_there);  //! asynchronous_store_not_awaited async_pending: may still be writing: nobody has waited for the phase
    if constexpr (mended) WAIT(&bar, 0); else SYNC_CLUSTER();
    out[i] = mine[t];  //! asynchronous_store_not_awaited
    SYNC_CLUSTER();
}

#define COPY_TO_PEER(to, from, bytes, b) asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(shared(from)), "r"(bytes), "r"(b) : "memory")
#define MULTICAST(to, from, bytes, b, mask) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(b)), "h"((unsigned short)(mask)) : "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async;" ::: "memory")
#define COPIES __shared__ alignas(128) unsigned got[64]; \
    if (t == 0) { INIT(&bar, 1); FENCE_INIT(); EXPECT(&bar, 256); }

KERNEL(source_rewritten_before_the_peer_has_it) {
    BEGIN
    COPIES
    mine[t] = t;
    FENCE_PROXY();
    SYNC_CLUSTER();
    MAP(there, got, peer);
    MAP(bar_there, &bar, peer);
    if (t == 0) COPY_TO_PEER(there, mine, 256, bar_there);  //! source_rewritten_before_the_peer_has_it async_pending or shared_race: may still be reading
    __syncthreads();
    if constexpr (mended) { WAIT(&bar, 0); SYNC_CLUSTER(); }
    mine[t] = 0;  //! source_rewritten_before_the_peer_has_it
    if constexpr (!mended) WAIT(&bar, 0);
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(own_wait_does_not_speak_for_the_peer) {  // the block has received; whether the other has is not known
    BEGIN
    COPIES
    mine[t] = t;
    FENCE_PROXY();
    SYNC_CLUSTER();
    MAP(there, got, peer);
    MAP(bar_there, &bar, peer);
    if (t == 0) COPY_TO_PEER(there, mine, 256, bar_there);  //! own_wait_does_not_speak_for_the_peer async_pending or shared_race: may still be reading
    WAIT(&bar, 0);
    if constexpr (mended) SYNC_CLUSTER();
    mine[t] = 0;  //! own_wait_does_not_speak_for_the_peer
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(copied_without_a_proxy_fence) {
    BEGIN
    COPIES
    mine[t] = t;  //! copied_without_a_proxy_fence proxy_fence: wrote at | without a fence.proxy.async behind it
    if constexpr (mended) FENCE_PROXY();
    SYNC_CLUSTER();
    MAP(there, got, peer);
    MAP(bar_there, &bar, peer);
    if (t == 0) COPY_TO_PEER(there, mine, 256, bar_there);  //! copied_without_a_proxy_fence
    WAIT(&bar, 0);
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(peers_bytes_copied_without_a_proxy_fence) {  // the peer wrote what this block copies
    BEGIN
    COPIES
    SYNC_CLUSTER();
    MAP(mine_there, mine + t, peer);
    STORE(mine_there, t);  //! peers_bytes_copied_without_a_proxy_fence proxy_fence: of the cluster's block | without a fence.proxy.async behind it
    if constexpr (mended) FENCE_PROXY();
    SYNC_CLUSTER();
    MAP(there, got, peer);
    MAP(bar_there, &bar, peer);
    if (t == 0) COPY_TO_PEER(there, mine, 256, bar_there);  //! peers_bytes_copied_without_a_proxy_fence
    WAIT(&bar, 0);
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(multicast_read_by_one_that_has_not_waited) {
    BEGIN
    COPIES
    SYNC_CLUSTER();
    if (rank == 0 && t == 0) MULTICAST(got, in, 256, &bar, 3);  //! multicast_read_by_one_that_has_not_waited async_pending or shared_race: may still be writing: nobody has waited for the phase or fills by the bulk copy or filled
    if (mended || rank == 0) WAIT(&bar, 0);
    out[i] = got[t];  //! multicast_read_by_one_that_has_not_waited
    SYNC_CLUSTER();
}

KERNEL(multicast_not_expected_by_one) {
    BEGIN
    __shared__ alignas(128) unsigned got[64];
    if (t == 0) { INIT(&bar, 1); FENCE_INIT(); }  //! multicast_not_expected_by_one deadlock: nobody can complete phase 0 of the mbarrier | 1 arrival and the announcement of 256 bytes
    if (t == 0 && (mended || rank == 0)) EXPECT(&bar, 256);
    SYNC_CLUSTER();
    if (rank == 0 && t == 0) MULTICAST(got, in, 256, &bar, 3);
    WAIT(&bar, 0);  //! multicast_not_expected_by_one
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(multicast_to_a_block_that_is_not_there) {
    BEGIN
    COPIES
    SYNC_CLUSTER();
    if (rank == 0 && t == 0) MULTICAST(got, in, 256, &bar, mended ? 3 : 7);  //! multicast_to_a_block_that_is_not_there cluster: names block 2 of a cluster of 2 blocks
    WAIT(&bar, 0);
    out[i] = got[t];
    SYNC_CLUSTER();
}

KERNEL(refilled_by_multicast_while_the_peer_reads) {
    BEGIN
    COPIES
    SYNC_CLUSTER();
    if (rank == 0 && t == 0) MULTICAST(got, in, 256, &bar, 3);  //~ refilled_by_multicast_while_the_peer_reads
    WAIT(&bar, 0);
    out[i] = got[t];
    if constexpr (mended) SYNC_CLUSTER(); else __syncthreads();
    if (t == 0) EXPECT(&bar, 256);
    if (rank == 0 && t == 0) MULTICAST(got, in, 256, &bar, 3);  //! refilled_by_multicast_while_the_peer_reads shared_race or async_pending: may still be reading or still be writing or nothing orders the two
    WAIT(&bar, 1);
    SYNC_CLUSTER();
}

KERNEL(copy_into_a_block_that_leaves) {
    BEGIN
    COPIES
    mine[t] = t;
    FENCE_PROXY();
    SYNC_CLUSTER();
    MAP(there, got, 1);
    MAP(bar_there, &bar, 1);
    if (rank == 0 && t == 0) COPY_TO_PEER(there, mine, 256, bar_there);  //! copy_into_a_block_that_leaves cluster: which has exited
    if (mended && rank == 1) WAIT(&bar, 0);
    out[i] = t;
    SYNC_CLUSTER();
}

KERNEL(arrivals_of_one_warp_apart) {
    BEGIN
    if (mended || t % 2) {
        ARRIVE_CLUSTER();  //! arrivals_of_one_warp_apart divergent_barrier: lanes of one warp execute | which is .aligned
    } else {
        ARRIVE_CLUSTER();  //! arrivals_of_one_warp_apart
    }
    WAIT_CLUSTER();
    out[i] = t;
}
// clang-format on

using Kernel = void (*)(unsigned *, const unsigned *);
#define CASE(name)                  \
    {                               \
        #name, {                    \
            name<false>, name<true> \
        }                           \
    }
const struct {
    const char *name;
    Kernel kernel[2];
} cases[] = {
    CASE(before_the_peer_started),
    CASE(after_the_peer_exited),
    CASE(one_arrival_short_of_the_exit),
    CASE(arrival_after_the_peer_exited),
    CASE(block_barrier_for_two_blocks),
    CASE(two_blocks_write),
    CASE(rewritten_while_the_peer_reads),
    CASE(relaxed_arrival_hands_nothing_over),
    CASE(arrives_twice),
    CASE(waits_without_arrival),
    CASE(one_block_waits_elsewhere),
    CASE(announced_at_the_wrong_block),
    CASE(rank_that_is_not_there),
    CASE(wait_at_the_peers_mbarrier),
    CASE(init_not_awaited_by_the_peer),
    CASE(data_and_mbarrier_apart),
    CASE(past_the_peers_end),
    CASE(nobody_wrote_there),
    CASE(asynchronous_store_not_awaited),
    CASE(arrivals_of_one_warp_apart),
    CASE(source_rewritten_before_the_peer_has_it),
    CASE(own_wait_does_not_speak_for_the_peer),
    CASE(copied_without_a_proxy_fence),
    CASE(peers_bytes_copied_without_a_proxy_fence),
    CASE(multicast_read_by_one_that_has_not_waited),
    CASE(multicast_not_expected_by_one),
    CASE(multicast_to_a_block_that_is_not_there),
    CASE(refilled_by_multicast_while_the_peer_reads),
    CASE(copy_into_a_block_that_leaves),
};

int main(int argc, char **argv) {
    unsigned *in, *out;
    cudaMalloc(&in, 4096);
    cudaMalloc(&out, 4096);
    cudaLaunchConfig_t config{};
    config.gridDim = 4;
    config.blockDim = 64;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, 4096, [&](bool numbers) { put_numbers(in, 4096, numbers); },
                [&](bool mended) { cudaLaunchKernelEx(&config, it.kernel[mended], out, (const unsigned *)in); });
    return 2;
}
