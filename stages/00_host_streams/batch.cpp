#include "batch.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace streams {

Kernel::Kernel(int stage) {
    char name[32];
    std::snprintf(name, sizeof name, "libstage_%02d.so", stage);
    const char *folder = std::getenv("FLASHLADDER_STAGE_LIBRARIES");
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const auto file = (folder ? std::filesystem::path(folder) : here.parent_path() / "lib") / name;
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Refused(std::string("no kernel: ") + dlerror() + "; build it with `make build`");
    forward_ = reinterpret_cast<decltype(&flash_forward)>(dlsym(library, "flash_forward"));
    describe_ = reinterpret_cast<decltype(&flash_describe)>(dlsym(library, "flash_describe"));
    last_error_ = reinterpret_cast<decltype(&flash_last_error)>(dlsym(library, "flash_last_error"));
    if (!forward_ || !describe_ || !last_error_) throw Refused(file.string() + " is no stage of the ladder");
}

size_t Kernel::workspace_bytes(const flash::Problem &problem) const {
    const FlashParams params = problem.params(nullptr, nullptr, nullptr, nullptr);
    FlashDescription description{};
    check(describe_(&params, &description));
    return description.workspace_bytes;
}

void Kernel::check(FlashStatus status) const {
    if (status == FLASH_CUDA_ERROR) throw CudaError(last_error_());
    if (status != FLASH_OK) throw Refused(last_error_());
}

HostBatch::HostBatch(size_t elements, bool pinned) {
    for (uint16_t **tensor : {&slice.Q, &slice.K, &slice.V, &slice.O}) {
        if (pinned) {
            must(cudaMallocHost(reinterpret_cast<void **>(tensor), elements * sizeof(uint16_t)), "pinned memory");
            pinned_.emplace_back(*tensor);
        } else {
            pageable_.push_back(std::make_unique<uint16_t[]>(elements));
            *tensor = pageable_.back().get();
        }
    }
}

void fill(const flash::Problem &batch, const Slice &host) {
    flash::Problem one = batch;
    one.B = 1;
    const size_t elements = one.q_elements();
    flash::Inputs inputs;
    for (int b = 0; b < batch.B; ++b) {
        if (b % 32 == 0) inputs = flash::random_inputs(one, b + 1);
        const size_t shift = size_t(b % 32) * 977 % elements;
        const std::pair<uint16_t *, std::vector<uint16_t> *> tensors[] = {
            {host.Q, &inputs.Q}, {host.K, &inputs.K}, {host.V, &inputs.V}};
        for (auto [to, from] : tensors) {
            std::rotate_copy(from->begin(), from->begin() + shift, from->end(), to + b * elements);
        }
    }
}

DeviceSide::DeviceSide(const Kernel &kernel, const flash::Problem &chunk, int sets, int stream_count) {
    const size_t workspace = kernel.workspace_bytes(chunk);
    for (int s = 0; s < sets; ++s) {
        Slice slice;
        for (uint16_t **tensor : {&slice.Q, &slice.K, &slice.V, &slice.O}) {
            *tensor = static_cast<uint16_t *>(allocate(chunk.q_elements() * sizeof(uint16_t)));
        }
        FlashParams one = chunk.params(slice.Q, slice.K, slice.V, slice.O);
        one.workspace = workspace ? allocate(workspace) : nullptr;
        one.workspace_bytes = workspace;
        slices.push_back(slice);
        params.push_back(one);
    }
    streams.resize(stream_count);
    for (cudaStream_t &stream : streams) {
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
}

DeviceSide::~DeviceSide() {
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

void *DeviceSide::allocate(size_t bytes) {
    void *data = nullptr;
    must(cudaMalloc(&data, bytes), "device memory");
    owned_.emplace_back(data);
    return data;
}

Checker::Checker(const flash::Problem &batch, const Slice &host)
    : batch_(batch), part_(batch), rows_(batch.Nq <= 128 ? batch.Nq : 16) {
    part_.B = part_.Hq = part_.Hkv = 1;
    part_.Nq = rows_;
    for (int b = 0; b < batch.B; ++b) {
        flash::Inputs inputs;
        inputs.Q = rows_of(host.Q, b);
        const size_t head = head_of(b), elements = size_t(batch.Nkv) * batch.d_head;
        inputs.K.assign(host.K + head, host.K + head + elements);
        inputs.V.assign(host.V + head, host.V + head + elements);
        references_.push_back(flash::reference(part_, inputs));
    }
}

std::string Checker::check(const Slice &host) const {
    const auto unwritten = std::count(host.O, host.O + batch_.q_elements(), flash::poison);
    const std::string missing =
        unwritten ? std::to_string(unwritten) + " numbers of the batch's O never came back" : "";
    for (int b = 0; b < batch_.B; ++b) {
        const flash::Comparison comparison = flash::compare(part_, rows_of(host.O, b), references_[b]);
        if (!comparison.passed) {
            return "problem " + std::to_string(b) + " of the batch: " + comparison.message +
                   (missing.empty() ? "" : "; " + missing);
        }
    }
    return missing;
}

size_t Checker::head_of(int b) const {
    const size_t head = size_t(batch_.Nq) * batch_.d_head;
    return (size_t(b) * batch_.Hq + b % batch_.Hq) * head;
}

std::vector<uint16_t> Checker::rows_of(const uint16_t *tensor, int b) const {
    std::vector<uint16_t> rows;
    for (int i = 0; i < rows_; ++i) {
        const uint16_t *row = tensor + head_of(b) + size_t(i) * (batch_.Nq / rows_) * batch_.d_head;
        rows.insert(rows.end(), row, row + batch_.d_head);
    }
    return rows;
}

}  // namespace streams
