// Gather. One sequence lies on the GPUs of a host. Each has a slice of the rows; it copies the other slices of K and V
// to itself, and then computes its rows of O with the kernel of stage shapes. There is no kernel here: what is new is
// queued by the host.
//
// One host thread queues the work of all ranks. It never waits for a GPU: streams wait for events. A stream can only
// wait for what has been recorded before, so the work is queued in an order in which every event comes before its
// waits.

#include "launch_ring.h"

namespace {

constexpr flash::Limits limits = {.title = "Gather",
                                  .min_compute = 90,
                                  .Br = 0,
                                  .Bc = 0,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // as stage shapes

FlashRingPiece slice_of(const FlashRingParams &params, int rank) {
    return flash::ring_piece(params.N, rank, params.ranks);
}

// How many ranks' K and V a rank needs: with a causal mask its own and those before it.
int slices_for(const FlashRingParams &params, int rank) {
    return params.causal ? rank + 1 : params.ranks;
}

// How many keys that is, from the beginning of the sequence: with a causal mask they end at the rank's last row, just
// as stage shapes expects it where there are more keys than queries.
int keys_for(const FlashRingParams &params, int rank) {
    const FlashRingPiece last = slice_of(params, slices_for(params, rank) - 1);
    return last.first + last.rows;
}

// K and V of all these keys, in the order of the sequence.
struct Gathered {
    FlashTensor K, V;
    size_t bytes;

    Gathered(const FlashRingParams &params, int rank, void *workspace) {
        const int keys = keys_for(params, rank);
        const size_t one = size_t{2} * params.B * params.Hkv * keys * params.d_head;
        flash::WorkspaceLayout layout(workspace);
        K = flash::without_gaps(layout.take(one), params.Hkv, keys, params.d_head);
        V = flash::without_gaps(layout.take(one), params.Hkv, keys, params.d_head);
        bytes = layout.bytes();
    }
};

// Copies a slice of K or V to its place among the keys. In a slice and among all keys each head's rows are one run of
// bytes; from head to head the distance is that of a slice here and of all keys there.
void copy_slice(const FlashTensor &all, const FlashTensor &slice, const FlashRingParams &params, int source,
                cudaStream_t stream) {
    const FlashRingPiece rows = slice_of(params, source);
    const size_t run = size_t{2} * rows.rows * params.d_head;
    flash::must(cudaMemcpy2DAsync(flash::from_row(all, rows.first).data, 2 * all.stride_head, slice.data, run, run,
                                  params.B * params.Hkv, cudaMemcpyDefault, stream),
                "copy of a slice");
}

void queue(flash::RingQueue &ring, const flash::Forward &attention) {
    const FlashRingParams &params = ring.params();
    const int P = params.ranks;
    std::vector<cudaEvent_t> ready(P), gathered(P);

    // Each rank's inputs are there, and its workspace is free, when its stream has come so far.
    for (int me = 0; me < P; ++me) ready[me] = ring.record(me, ring[me].stream);

    for (int me = 0; me < P; ++me) {
        const FlashRank &rank = ring[me];
        const Gathered all(params, me, rank.workspace);
        ring.use(me);

        // Copy the slices, the own one first. In each step all ranks ask another one, so that no link is crowded.
        ring.wait(me, rank.copy_stream, ready[me]);
        for (int step = 0; step < slices_for(params, me); ++step) {
            const int source = (me - step + P) % P;
            ring.wait(me, rank.copy_stream, ready[source]);
            const flash::RingMark mark(params, me, FLASH_RING_PULL, source, rank.copy_stream);
            copy_slice(all.K, ring[source].K, params, source, rank.copy_stream);
            copy_slice(all.V, ring[source].V, params, source, rank.copy_stream);
        }
        gathered[me] = ring.record(me, rank.copy_stream);

        // O of the own rows, when all keys are there.
        ring.wait(me, rank.stream, gathered[me]);
        FlashParams call = flash::part_of(params);
        call.Q = rank.Q;
        call.K = all.K;
        call.V = all.V;
        call.O = rank.O;
        call.log_sum_exp = rank.log_sum_exp;
        call.Nq = slice_of(params, me).rows;
        call.Nkv = keys_for(params, me);
        call.causal = params.causal;
        const flash::RingMark mark(params, me, FLASH_RING_ATTENTION, -1, rank.stream);
        attention(call, rank.stream);
    }

    // What a stream is given after this call may change its K and V: only when no other rank still copies from there.
    for (int me = 0; me < P; ++me) {
        for (int other = 0; other < P; ++other) ring.wait(me, ring[me].stream, gathered[other]);
    }
}

FlashRingDescription describe(const FlashRingParams &params, int rank) {
    const FlashRingPiece own = slice_of(params, rank);
    const int64_t rows = own.rows, keys = keys_for(params, rank);
    return {.title = limits.title,
            .min_compute = limits.min_compute,
            .pieces = {own, {}},
            .workspace_bytes = Gathered(params, rank, nullptr).bytes,
            .zeroed_workspace = 0,
            .pulled_bytes = int64_t{4} * params.B * params.Hkv * (keys - rows) * params.d_head,
            .scores = rows * keys - (params.causal ? rows * (rows - 1) / 2 : 0)};
}

}  // namespace

extern "C" FlashStatus flash_describe_ring(const FlashRingParams *params, int32_t rank,
                                           FlashRingDescription *description) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, rank, limits, 1);
        flash::Forward(*params).check(*params, slice_of(*params, rank).rows, keys_for(*params, rank), params->causal);
        *description = describe(*params, rank);
    });
}

extern "C" FlashStatus flash_ring(const FlashRingParams *params, const FlashRank *ranks) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, 0, limits, 1);
        flash::check_ring(params, ranks, limits, describe);
        flash::RingQueue ring(*params, ranks);
        queue(ring, flash::Forward(*params));
    });
}
