#include "launch_ring.h"

#include <cudaTypedefs.h>  // PFN_cuStreamWriteValue32
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "checks.h"

namespace flash {

void must(cudaError_t error, const char *what) {
    if (error != cudaSuccess) throw RingFailure{cuda_failure(what, error)};
}

void must(FlashStatus status) {
    if (status != FLASH_OK) throw RingFailure{status};
}

FlashStatus ring_call(const std::function<void()> &body) {
    int device = 0;
    if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
        return cuda_failure("no usable CUDA device", error);
    }
    FlashStatus status = FLASH_OK;
    try {
        body();
    } catch (const RingFailure &failure) {
        status = failure.status;
    }
    cudaSetDevice(device);
    return status;
}

void check_ring_sizes(const FlashRingParams *params, int rank, const Limits &limits, int pieces) {
    if (!params) must(fail(FLASH_INVALID_ARGUMENT, "params is a null pointer"));
    if (params->ranks <= 0) {
        must(fail(FLASH_INVALID_ARGUMENT, "ranks must be positive; it is %d", params->ranks));
    }
    if (rank < 0 || rank >= params->ranks) {
        must(fail(FLASH_INVALID_ARGUMENT, "rank must be from 0 to %d; it is %d", params->ranks - 1, rank));
    }
    if (params->ranks > most_ranks) {
        must(fail(FLASH_UNSUPPORTED, "ranks must be at most %d; it is %d", most_ranks, params->ranks));
    }
    if (params->N <= 0) must(fail(FLASH_INVALID_ARGUMENT, "N must be positive; it is %d", params->N));
    FlashParams whole = part_of(*params);
    whole.Nq = whole.Nkv = params->N;
    whole.causal = params->causal;
    whole.configuration = nullptr;  // another library's
    must(check_sizes(&whole, limits));
    must(check_scale(params->scale, limits));
    if (params->N < pieces * params->ranks) {
        must(fail(FLASH_UNSUPPORTED,
                  "stage '%s' divides the sequence into %d pieces, and N must be at least that; it is %d", limits.title,
                  pieces * params->ranks, params->N));
    }
}

// K and V are copied as they lie.
static void check_gaps(const char *name, const FlashTensor &tensor, const FlashRingParams &params, int rows) {
    const FlashTensor wanted = without_gaps(tensor.data, params.Hkv, rows, params.d_head);
    if (tensor.stride_batch != wanted.stride_batch || tensor.stride_head != wanted.stride_head ||
        tensor.stride_row != wanted.stride_row) {
        must(fail(FLASH_UNSUPPORTED,
                  "%s must lie without gaps, with strides %lld, %lld and %lld; they are %lld, %lld and %lld", name,
                  static_cast<long long>(wanted.stride_batch), static_cast<long long>(wanted.stride_head),
                  static_cast<long long>(wanted.stride_row), static_cast<long long>(tensor.stride_batch),
                  static_cast<long long>(tensor.stride_head), static_cast<long long>(tensor.stride_row)));
    }
}

static void check_rank(const FlashRingParams &params, const FlashRank &rank, const Limits &limits,
                       const FlashRingDescription &description) {
    const std::pair<const char *, const FlashTensor *> tensors[] = {
        {"Q", &rank.Q}, {"K", &rank.K}, {"V", &rank.V}, {"O", &rank.O}};
    for (auto [name, tensor] : tensors) must(check_tensor(name, *tensor, 2));
    check_gaps("K", rank.K, params, ring_rows(description));
    check_gaps("V", rank.V, params, ring_rows(description));
    must(check_log_sum_exp(rank.log_sum_exp));
    must(check_workspace(rank.workspace, rank.workspace_bytes, description.workspace_bytes, limits,
                         "flash_describe_ring"));
    if (rank.stream == rank.copy_stream) {
        must(fail(FLASH_INVALID_ARGUMENT, "stream and copy_stream must be two streams; both are %p",
                  static_cast<void *>(rank.stream)));
    }
}

// The device that is current reaches the memory of the other from now on.
static void reach(int device, int other) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaSuccess) return;
    cudaGetLastError();  // told here, and no error that a later check should find
    if (error == cudaErrorPeerAccessAlreadyEnabled) return;
    if (error != cudaErrorPeerAccessUnsupported) must(error, "peer access");
    must(fail(
        FLASH_UNSUPPORTED,
        "GPU %d cannot reach the memory of GPU %d: this host has no peer access between them (nvidia-smi topo -p2p "
        "r shows which pairs have it)",
        device, other));
}

// Puts the rank before the text of what is wrong with it.
static RingFailure of_rank(int rank, const RingFailure &failure) {
    const std::string text = flash_last_error();
    return {fail(failure.status, "rank %d: %s", rank, text.c_str())};
}

void check_ring(const FlashRingParams *params, const FlashRank *ranks, const Limits &limits, DescribeRank describe) {
    if (!ranks) must(fail(FLASH_INVALID_ARGUMENT, "ranks is a null pointer"));
    for (int rank = 0; rank < params->ranks; ++rank) {
        try {
            must(cudaSetDevice(ranks[rank].device), "device");
            must(check_device(limits));
            check_rank(*params, ranks[rank], limits, describe(*params, rank));
        } catch (const RingFailure &failure) {
            throw of_rank(rank, failure);
        }
    }
    for (int rank = 0; rank < params->ranks; ++rank) {
        must(cudaSetDevice(ranks[rank].device), "device");
        for (int other = 0; other < params->ranks; ++other) {
            if (ranks[other].device != ranks[rank].device) reach(ranks[rank].device, ranks[other].device);
        }
    }
}

void check_own_kernel(const FlashRingParams *params, const FlashRank *ranks, const Limits &limits) {
    if (params->forward) {
        must(fail(FLASH_UNSUPPORTED, "stage '%s' has a kernel of its own; forward must be null", limits.title));
    }
    for (int rank = 0; rank < params->ranks; ++rank) {
        for (int other = 0; other < rank; ++other) {
            if (ranks[other].device != ranks[rank].device) continue;
            must(fail(FLASH_UNSUPPORTED,
                      "stage '%s' needs a GPU for each rank, because its kernels wait for copies that are queued after "
                      "them; ranks %d and %d both have device %d",
                      limits.title, other, rank, ranks[rank].device));
        }
    }
}

// ---- attention by another stage ----

static std::filesystem::path beside_this(const char *name) {
    Dl_info here{};
    dladdr(reinterpret_cast<void *>(&beside_this), &here);
    return std::filesystem::path(here.dli_fname).parent_path() / name;
}

Forward::Forward(const FlashRingParams &params) {
    const std::string file = params.forward ? params.forward : beside_this("libstage_23.so").string();
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded
    if (!library) must(fail(FLASH_INVALID_ARGUMENT, "no library that computes attention: %s", dlerror()));
    forward_ = reinterpret_cast<decltype(forward_)>(dlsym(library, "flash_forward"));
    describe_ = reinterpret_cast<decltype(describe_)>(dlsym(library, "flash_describe"));
    last_error_ = reinterpret_cast<decltype(last_error_)>(dlsym(library, "flash_last_error"));
    if (!forward_ || !describe_ || !last_error_) {
        must(fail(FLASH_INVALID_ARGUMENT, "%s is no stage that computes attention", file.c_str()));
    }
}

void Forward::pass(FlashStatus status) const {
    if (status != FLASH_OK) must(fail(status, "%s", last_error_()));
}

void Forward::check(const FlashRingParams &params, int Nq, int Nkv, bool causal) const {
    FlashParams call = part_of(params);
    call.Nq = Nq;
    call.Nkv = Nkv;
    call.causal = causal;
    FlashDescription description{};
    pass(describe_(&call, &description));
    if (!description.supports_log_sum_exp || description.workspace_bytes) {
        must(fail(FLASH_UNSUPPORTED, "stage '%s' cannot compute a part of the attention: it %s", description.title,
                  description.workspace_bytes ? "needs a workspace" : "does not tell the log-sum-exp"));
    }
    if (description.positive_scale && params.scale <= 0) {
        must(fail(FLASH_UNSUPPORTED, "stage '%s' needs a scale above 0; it is %g", description.title, params.scale));
    }
}

void Forward::operator()(const FlashParams &call, cudaStream_t stream) const {
    pass(forward_(&call, stream));
}

FlashParams part_of(const FlashRingParams &params) {
    FlashParams part{};
    part.B = params.B;
    part.Hq = params.Hq;
    part.Hkv = params.Hkv;
    part.d_head = params.d_head;
    part.dtype = params.dtype;
    part.scale = params.scale;
    part.configuration = params.configuration;
    return part;
}

FlashTensor without_gaps(void *data, int heads, int rows, int d_head) {
    const int64_t head = int64_t{rows} * d_head;
    return {data, heads * head, head, d_head};
}

FlashTensor from_row(FlashTensor tensor, int row) {
    tensor.data = static_cast<uint16_t *>(tensor.data) + row * tensor.stride_row;
    return tensor;
}

// ---- flags ----

using WriteValue = PFN_cuStreamWriteValue32_v11070;

// The driver's function, by way of the runtime: a stage links with no driver library.
static WriteValue find_write_value() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    must(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function, 12000, cudaEnableDefault, &found),
         "cuStreamWriteValue32");
    return reinterpret_cast<WriteValue>(function);
}

void write_value(cudaStream_t stream, uint32_t *flag, uint32_t value) {
    static const WriteValue write = find_write_value();
    const auto address = reinterpret_cast<CUdeviceptr>(flag);
    if (!write || write(stream, address, value, CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS) {
        must(fail(FLASH_CUDA_ERROR, "the CUDA driver has no cuStreamWriteValue32, or refuses"));
    }
}

// ---- order ----

void RingQueue::use(int rank) const {
    must(cudaSetDevice(ranks_[rank].device), "device");
}

cudaEvent_t RingQueue::record(int rank, cudaStream_t stream) {
    use(rank);
    cudaEvent_t event = nullptr;
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    events_.emplace_back(event, cudaEventDestroy);
    must(cudaEventRecord(event, stream), "event");
    return event;
}

void RingQueue::wait(int rank, cudaStream_t stream, cudaEvent_t event) const {
    use(rank);  // which default stream is meant, where it is one
    if (event) must(cudaStreamWaitEvent(stream, event), "wait for an event");
}

}  // namespace flash
