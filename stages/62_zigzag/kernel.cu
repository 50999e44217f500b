// Zigzag. With a causal mask the last rows of a sequence have the most work. So the sequence is divided into 2P
// pieces, and rank r has piece r and piece 2P-1-r: an early one with little work and a late one with much. All ranks
// have the same work then, in every step.
//
// A rank copies what it needs of another one's K and V straight from there. One host thread queues the work of all
// ranks, in an order in which every event is recorded before a stream is told to wait for it.

#include <algorithm>
#include <vector>

#include "merge_parts.cuh"

constexpr flash::Limits limits = {.title = "Zigzag",
                                  .min_compute = 90,
                                  .Br = 0,
                                  .Bc = 0,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // as stage shapes

// ---- who needs what ----

static FlashRingPiece early_of(const FlashRingParams &params, int rank) {
    return flash::ring_piece(params.N, rank, 2 * params.ranks);
}

static FlashRingPiece late_of(const FlashRingParams &params, int rank) {
    return flash::ring_piece(params.N, 2 * params.ranks - 1 - rank, 2 * params.ranks);
}

static int rows_of(const FlashRingParams &params, int rank) {
    return early_of(params, rank).rows + late_of(params, rank).rows;
}

// A rectangle of S: rows of a rank's Q from `first` on, against the first `keys` rows of the source's K and V.
struct Rectangle {
    int source;
    int first, rows, keys;
    bool causal;

    int64_t scores() const {
        const int64_t all = int64_t{rows} * keys;
        return causal ? all - int64_t{rows} * (rows - 1) / 2 : all;
    }
};

// What a rank computes with the K and V of another one. All pieces of lower ranks are either before both of its own, or
// past both. Of a higher rank both pieces lie between its own.
static Rectangle rectangle(const FlashRingParams &params, int rank, int source) {
    const int early = early_of(params, rank).rows, late = late_of(params, rank).rows;
    if (!params.causal) return {source, 0, early + late, rows_of(params, source), false};
    if (source < rank) return {source, 0, early + late, early_of(params, source).rows, false};
    return {source, early, late, rows_of(params, source), false};
}

// The rectangles of a rank, those of its own K and V first. In step s >= 1 it is that of the rank s before, round the
// ring.
static std::vector<Rectangle> rectangles(const FlashRingParams &params, int rank) {
    const int early = early_of(params, rank).rows, late = late_of(params, rank).rows, P = params.ranks;
    std::vector<Rectangle> found;
    if (params.causal) {
        found.push_back({rank, 0, early, early, true});
        found.push_back({rank, early, late, early + late, true});  // its last row sees all of both pieces
    } else {
        found.push_back({rank, 0, early + late, early + late, false});
    }
    for (int step = 1; step < P; ++step) found.push_back(rectangle(params, rank, (rank - step + P) % P));
    return found;
}

// ---- memory ----

// Two buffers for K and V of other ranks, and a part for each rectangle.
struct Workspace {
    void *K[2], *V[2];
    Parts parts{};
    size_t bytes;

    Workspace(const FlashRingParams &params, int rank, void *memory) {
        flash::WorkspaceLayout layout(memory);
        const std::vector<Rectangle> work = rectangles(params, rank);
        int64_t keys = 0;
        for (const Rectangle &one : work) {
            if (one.source != rank) keys = std::max<int64_t>(keys, one.keys);
        }
        for (int buffer = 0; buffer < 2; ++buffer) {
            K[buffer] = layout.take(2 * keys * params.B * params.Hkv * params.d_head);
            V[buffer] = layout.take(2 * keys * params.B * params.Hkv * params.d_head);
        }
        for (const Rectangle &one : work) {
            const size_t rows = size_t(params.B) * params.Hq * one.rows;
            void *O = layout.take(2 * rows * params.d_head);
            float *log_sum_exp = static_cast<float *>(layout.take(sizeof(float) * rows));
            parts.part[parts.count++] = {O, log_sum_exp, one.first, one.rows};
        }
        bytes = layout.bytes();
    }
};

// ---- order ----

class Zigzag {
  public:
    Zigzag(flash::RingQueue &ring, const flash::Forward &attention)
        : ring_(ring),
          params_(ring.params()),
          P_(params_.ranks),
          attention_(attention),
          ready_(P_),
          pulled_(P_, Events(P_)),
          computed_(P_, Events(P_)) {
        for (int me = 0; me < P_; ++me) {
            work_.push_back(rectangles(params_, me));
            workspaces_.emplace_back(params_, me, ring[me].workspace);
        }
    }

    void queue() {
        // Each rank's inputs are there, and its workspace is free, when its stream has come so far.
        for (int me = 0; me < P_; ++me) ready_[me] = ring_.record(me, ring_[me].stream);

        const int own = static_cast<int>(work_[0].size()) - (P_ - 1);  // rectangles of a rank's own K and V
        for (int step = 0; step < P_; ++step) {
            for (int me = 0; me < P_; ++me) {
                ring_.use(me);
                if (step > 0) pull(me, step, work_[me][own - 1 + step]);
                ring_.wait(me, ring_[me].stream, pulled_[me][step]);
                for (int number = step ? own - 1 + step : 0; number < own + step; ++number) attend(me, step, number);
                computed_[me][step] = ring_.record(me, ring_[me].stream);
            }
        }
        for (int me = 0; me < P_; ++me) {
            ring_.use(me);
            const flash::RingMark mark(params_, me, FLASH_RING_MERGE, -1, ring_[me].stream);
            merge(params_, ring_[me], workspaces_[me].parts, rows_of(params_, me));
        }
        // What a stream is given after this call may change its K and V: only when no other rank still copies from
        // there.
        for (int me = 0; me < P_; ++me) {
            for (int step = 1; step < P_; ++step) ring_.wait(me, ring_[me].stream, pulled_[(me + step) % P_][step]);
        }
    }

  private:
    using Events = std::vector<cudaEvent_t>;  // by step; null where there is nothing to wait for

    // ---- pull ----

    // Copies the rectangle's keys into one of the two buffers, by turns.
    void pull(int me, int step, const Rectangle &one) {
        const FlashRank &rank = ring_[me];
        const cudaStream_t stream = rank.copy_stream;
        ring_.wait(me, stream, ready_[one.source]);
        if (step == 1) ring_.wait(me, stream, ready_[me]);
        if (step > 2) ring_.wait(me, stream, computed_[me][step - 2]);  // the buffer is free
        {
            const flash::RingMark mark(params_, me, FLASH_RING_PULL, one.source, stream);
            copy_keys(workspaces_[me].K[step % 2], ring_[one.source].K, one, stream);
            copy_keys(workspaces_[me].V[step % 2], ring_[one.source].V, one, stream);
        }
        pulled_[me][step] = ring_.record(me, stream);
    }

    // The first keys of each head: here one head's follow those of the head before, there a head has all of its rows.
    void copy_keys(void *to, const FlashTensor &from, const Rectangle &one, cudaStream_t stream) const {
        const size_t run = size_t{2} * one.keys * params_.d_head;
        flash::must(cudaMemcpy2DAsync(to, run, from.data, 2 * from.stride_head, run, params_.B * params_.Hkv,
                                      cudaMemcpyDefault, stream),
                    "copy of keys");
    }

    // ---- attend ----

    void attend(int me, int step, int number) {
        const FlashRank &rank = ring_[me];
        const Workspace &workspace = workspaces_[me];
        const Rectangle &one = work_[me][number];
        const Part &part = workspace.parts.part[number];
        FlashParams call = flash::part_of(params_);
        call.Q = flash::from_row(rank.Q, one.first);
        call.K = step ? flash::without_gaps(workspace.K[step % 2], params_.Hkv, one.keys, params_.d_head) : rank.K;
        call.V = step ? flash::without_gaps(workspace.V[step % 2], params_.Hkv, one.keys, params_.d_head) : rank.V;
        call.O = flash::without_gaps(part.O, params_.Hq, part.rows, params_.d_head);
        call.log_sum_exp = part.log_sum_exp;
        call.Nq = one.rows;
        call.Nkv = one.keys;
        call.causal = one.causal;
        const flash::RingMark mark(params_, me, FLASH_RING_ATTENTION, one.source, rank.stream);
        attention_(call, rank.stream);
    }

    // ---- what is queued so far ----

    flash::RingQueue &ring_;
    const FlashRingParams &params_;
    const int P_;
    const flash::Forward &attention_;
    std::vector<std::vector<Rectangle>> work_;
    std::vector<Workspace> workspaces_;
    Events ready_;
    std::vector<Events> pulled_, computed_;
};

// ---- launch ----

static FlashRingDescription describe(const FlashRingParams &params, int rank) {
    int64_t keys = 0, scores = 0;
    for (const Rectangle &one : rectangles(params, rank)) {
        keys += one.source == rank ? 0 : one.keys;
        scores += one.scores();
    }
    return {.title = limits.title,
            .min_compute = limits.min_compute,
            .pieces = {early_of(params, rank), late_of(params, rank)},
            .workspace_bytes = Workspace(params, rank, nullptr).bytes,
            .zeroed_workspace = 0,
            .pulled_bytes = int64_t{4} * params.B * params.Hkv * keys * params.d_head,
            .scores = scores};
}

extern "C" FlashStatus flash_describe_ring(const FlashRingParams *params, int32_t rank,
                                           FlashRingDescription *description) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, rank, limits, 2);
        const flash::Forward attention(*params);
        for (const Rectangle &one : rectangles(*params, rank)) attention.check(*params, one.rows, one.keys, one.causal);
        *description = describe(*params, rank);
    });
}

extern "C" FlashStatus flash_ring(const FlashRingParams *params, const FlashRank *ranks) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, 0, limits, 2);
        flash::check_ring(params, ranks, limits, describe);
        const flash::Forward attention(*params);
        flash::RingQueue ring(*params, ranks);
        Zigzag(ring, attention).queue();
    });
}
