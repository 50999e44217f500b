// Ring. K and V go round a ring of GPUs. Each rank attends to the slice that it has while it copies the next one
// from its neighbour. What the rows have come to with each slice is merged at the end, by a small kernel.
//
// One host thread queues the work of all ranks. It never waits for a GPU: streams wait for events. A stream can only
// wait for what has been recorded before, so the work is queued in an order in which every event comes before its
// waits: step by step, and in each step rank by rank.

#include "launch_ring.h"
#include "numbers.cuh"

// ---- merge ----

constexpr int merge_threads = 256;
constexpr int most_parts = flash::most_ranks + 1;

// What attention to some of the keys has come to, for `rows` rows of a rank from `first` on.
struct Part {
    void *O;             // [B, Hq, rows, d_head], divided by its own sum
    float *log_sum_exp;  // [B, Hq, rows]
    int first, rows;

    __device__ bool has(int row) const { return row >= first && row < first + rows; }
    // The place of a row, given the number of its head among those of all batches.
    __device__ int64_t place(int64_t head, int row) const { return head * rows + row - first; }
};

struct Parts {
    Part part[most_parts];
    int count;
};

// O = sum of exp(l_p - l) O_p over the parts p, with l = log(sum of exp(l_p)): each part weighs as much as its keys'
// exponentials do among those of all keys. d_head / 8 threads have a row, 8 columns each.
template <typename T, int d_head>
__global__ void __launch_bounds__(merge_threads)
    merge_kernel(const Parts parts, const FlashTensor O, float *log_sum_exp, const int Hq, const int L,
                 const int64_t rows) {
    constexpr int lanes = d_head / 8;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * merge_threads + threadIdx.x;
    const int64_t number = thread / lanes, head = number / L;
    const int row = number % L, lane = thread % lanes;
    if (number >= rows) return;

    float largest = -INFINITY;  // exponentials are taken relative to it, so that none overflows
    for (int p = 0; p < parts.count; ++p) {
        const Part &part = parts.part[p];
        if (part.has(row)) largest = fmaxf(largest, part.log_sum_exp[part.place(head, row)]);
    }
    float sum = 0.0f, merged[8] = {};
    for (int p = 0; p < parts.count; ++p) {
        const Part &part = parts.part[p];
        if (!part.has(row)) continue;
        const int64_t place = part.place(head, row);
        const float weight = expf(part.log_sum_exp[place] - largest);
        sum += weight;
        const uint4 eight =
            *reinterpret_cast<const uint4 *>(static_cast<const T *>(part.O) + place * d_head + 8 * lane);
        const T *own = reinterpret_cast<const T *>(&eight);
#pragma unroll
        for (int x = 0; x < 8; x += 2) {
            const float2 two = to_float2(own + x);
            merged[x] += weight * two.x;
            merged[x + 1] += weight * two.y;
        }
    }
    uint32_t pairs[4];
#pragma unroll
    for (int x = 0; x < 8; x += 2) pairs[x / 2] = pack<T>(merged[x] / sum, merged[x + 1] / sum);
    T *to = static_cast<T *>(O.data) + head / Hq * O.stride_batch + head % Hq * O.stride_head + row * O.stride_row;
    *reinterpret_cast<uint4 *>(to + 8 * lane) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    if (log_sum_exp && lane == 0) log_sum_exp[number] = largest + logf(sum);
}

// Queues the kernel: into the rank's O and log-sum-exp, of L rows a head.
static void merge(const FlashRingParams &params, const FlashRank &rank, const Parts &parts, int L) {
    using Merge = flash::TypedKernel<const Parts, const FlashTensor, float *, const int, const int, const int64_t>;
    const int64_t rows = int64_t{params.B} * params.Hq * L, threads = rows * (params.d_head / 8);
    Merge kernel = flash::choose_instance(params, [&]<typename T, int d_head>() {
        const dim3 grid(static_cast<unsigned>((threads + merge_threads - 1) / merge_threads));
        return Merge{merge_kernel<T, d_head>, grid, merge_threads};
    });
    flash::must(
        flash::KernelQueue(rank.stream).add(kernel, parts, rank.O, rank.log_sum_exp, params.Hq, L, rows).status());
}

// ---- ranks ----

constexpr flash::Limits limits = {.title = "Ring",
                                  .min_compute = 90,
                                  .Br = 0,
                                  .Bc = 0,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // as stage shapes

static FlashRingPiece slice_of(const FlashRingParams &params, int rank) {
    return flash::ring_piece(params.N, rank, params.ranks);
}

// In step s a rank attends to the slice of the rank s before it. With a causal mask nothing comes round from the end of
// the sequence to its beginning: rank r needs the slices 0 to r alone, its own first.
static int steps_of(const FlashRingParams &params, int rank) {
    return params.causal ? rank + 1 : params.ranks;
}

static int source_of(const FlashRingParams &params, int rank, int step) {
    return (rank - step + params.ranks) % params.ranks;
}

static size_t slice_bytes(const FlashRingParams &params, int source) {
    return size_t{2} * params.B * params.Hkv * slice_of(params, source).rows * params.d_head;
}

// Two buffers for slices that come round, and a part for each step.
struct Workspace {
    void *K[2], *V[2];
    Parts parts{};
    size_t bytes;

    Workspace(const FlashRingParams &params, int rank, void *memory) {
        flash::WorkspaceLayout layout(memory);
        const size_t longest = slice_bytes(params, params.ranks - 1);  // no slice has more rows than the last
        for (int buffer = 0; buffer < 2; ++buffer) {
            K[buffer] = layout.take(longest);
            V[buffer] = layout.take(longest);
        }
        const int L = slice_of(params, rank).rows;
        const size_t rows = size_t(params.B) * params.Hq * L;
        parts.count = steps_of(params, rank);
        for (int step = 0; step < parts.count; ++step) {
            void *O = layout.take(2 * rows * params.d_head);
            parts.part[step] = {O, static_cast<float *>(layout.take(sizeof(float) * rows)), 0, L};
        }
        bytes = layout.bytes();
    }
};

class Round {
  public:
    Round(flash::RingQueue &ring, const flash::Forward &attention)
        : ring_(ring),
          params_(ring.params()),
          P_(params_.ranks),
          attention_(attention),
          ready_(P_),
          pulled_(P_, Events(P_)),
          computed_(P_, Events(P_)) {
        for (int me = 0; me < P_; ++me) workspaces_.emplace_back(params_, me, ring[me].workspace);
    }

    void queue() {
        // Each rank's inputs are there, and its workspace is free, when its stream has come so far.
        for (int me = 0; me < P_; ++me) ready_[me] = ring_.record(me, ring_[me].stream);

        for (int step = 0; step < P_; ++step) {
            for (int me = 0; me < P_; ++me) {
                if (step >= steps_of(params_, me)) continue;
                ring_.use(me);
                if (step > 0) pull(me, step);
                attend(me, step);
            }
        }
        for (int me = 0; me < P_; ++me) {
            ring_.use(me);
            const flash::RingMark mark(params_, me, FLASH_RING_MERGE, -1, ring_[me].stream);
            merge(params_, ring_[me], workspaces_[me].parts, slice_of(params_, me).rows);
        }
        // What a stream is given after this call may change K, V and the workspace: only when the neighbour has its
        // copy.
        for (int me = 0; me < P_; ++me) {
            for (cudaEvent_t copied : pulled_[next(me)]) ring_.wait(me, ring_[me].stream, copied);
        }
    }

  private:
    using Events = std::vector<cudaEvent_t>;  // by step; null where there is nothing to wait for

    int before(int rank) const { return (rank - 1 + P_) % P_; }
    int next(int rank) const { return (rank + 1) % P_; }

    // The slice of a step lies where the rank has its own, or in one of the two buffers by turns.
    FlashTensor K_of(int rank, int step) const {
        return step == 0 ? ring_[rank].K : in_buffer(workspaces_[rank].K[step % 2], rank, step);
    }
    FlashTensor V_of(int rank, int step) const {
        return step == 0 ? ring_[rank].V : in_buffer(workspaces_[rank].V[step % 2], rank, step);
    }
    FlashTensor in_buffer(void *buffer, int rank, int step) const {
        const int rows = slice_of(params_, source_of(params_, rank, step)).rows;
        return flash::without_gaps(buffer, params_.Hkv, rows, params_.d_head);
    }

    // ---- pull ----

    // Copies the slice that the rank before has had in the step before.
    void pull(int me, int step) {
        const int left = before(me), source = source_of(params_, me, step);
        const cudaStream_t stream = ring_[me].copy_stream;
        // It is there: as an input, or since the neighbour's own copy.
        ring_.wait(me, stream, step == 1 ? ready_[left] : pulled_[left][step - 1]);
        // The buffer is free: this rank and the one after it have done with the slice of two steps ago.
        if (step == 1) ring_.wait(me, stream, ready_[me]);
        if (step > 2) {
            ring_.wait(me, stream, computed_[me][step - 2]);
            ring_.wait(me, stream, pulled_[next(me)][step - 1]);
        }
        {
            const flash::RingMark mark(params_, me, FLASH_RING_PULL, source, stream);
            const size_t bytes = slice_bytes(params_, source);
            const int here = ring_[me].device, there = ring_[left].device;
            flash::must(cudaMemcpyPeerAsync(K_of(me, step).data, here, K_of(left, step - 1).data, there, bytes, stream),
                        "copy of K");
            flash::must(cudaMemcpyPeerAsync(V_of(me, step).data, here, V_of(left, step - 1).data, there, bytes, stream),
                        "copy of V");
        }
        pulled_[me][step] = ring_.record(me, stream);
    }

    // ---- attend ----

    // Attends to the slice of this step. Only the own one has a mask: the others lie before it as a whole.
    void attend(int me, int step) {
        const FlashRank &rank = ring_[me];
        const Part &part = workspaces_[me].parts.part[step];
        ring_.wait(me, rank.stream, pulled_[me][step]);
        FlashParams call = flash::part_of(params_);
        call.Q = rank.Q;
        call.K = K_of(me, step);
        call.V = V_of(me, step);
        call.O = flash::without_gaps(part.O, params_.Hq, part.rows, params_.d_head);
        call.log_sum_exp = part.log_sum_exp;
        call.Nq = part.rows;
        call.Nkv = slice_of(params_, source_of(params_, me, step)).rows;
        call.causal = params_.causal && step == 0;
        {
            const flash::RingMark mark(params_, me, FLASH_RING_ATTENTION, source_of(params_, me, step), rank.stream);
            attention_(call, rank.stream);
        }
        computed_[me][step] = ring_.record(me, rank.stream);
    }

    // ---- what is queued so far ----

    flash::RingQueue &ring_;
    const FlashRingParams &params_;
    const int P_;
    const flash::Forward &attention_;
    std::vector<Workspace> workspaces_;
    Events ready_;
    std::vector<Events> pulled_, computed_;
};

// ---- launch ----

static FlashRingDescription describe(const FlashRingParams &params, int rank) {
    const FlashRingPiece own = slice_of(params, rank);
    const int64_t rows = own.rows, keys = params.causal ? own.first + own.rows : params.N;
    return {.title = limits.title,
            .min_compute = limits.min_compute,
            .pieces = {own, {}},
            .workspace_bytes = Workspace(params, rank, nullptr).bytes,
            .zeroed_workspace = 0,
            .pulled_bytes = int64_t{4} * params.B * params.Hkv * (keys - rows) * params.d_head,
            .scores = rows * keys - (params.causal ? rows * (rows - 1) / 2 : 0)};
}

extern "C" FlashStatus flash_describe_ring(const FlashRingParams *params, int32_t rank,
                                           FlashRingDescription *description) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, rank, limits, 1);
        const int rows = slice_of(*params, rank).rows;
        const flash::Forward attention(*params);
        attention.check(*params, rows, rows, params->causal);
        attention.check(*params, rows, slice_of(*params, params->ranks - 1).rows, false);
        *description = describe(*params, rank);
    });
}

extern "C" FlashStatus flash_ring(const FlashRingParams *params, const FlashRank *ranks) {
    return flash::ring_call([&] {
        flash::check_ring_sizes(params, 0, limits, 1);
        flash::check_ring(params, ranks, limits, describe);
        const flash::Forward attention(*params);
        flash::RingQueue ring(*params, ranks);
        Round(ring, attention).queue();
    });
}
