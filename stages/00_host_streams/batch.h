// The batch in host memory, room for its chunks on the device, the kernel that computes them, and what the results are
// compared with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention.h"
#include "host_streams.h"
#include "problem.h"
#include "reference.h"

namespace streams {

// The kernel cannot do what was asked for, or there is none.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A stage's kernel, from the library that lies beside this program, ../lib/libstage_NN.so, or in the folder
// FLASHLADDER_STAGE_LIBRARIES. Throws Refused or CudaError with the stage's own words.
class Kernel {
  public:
    explicit Kernel(int stage);
    size_t workspace_bytes(const flash::Problem &) const;
    void launch(const FlashParams &params, cudaStream_t stream) const { check(forward_(&params, stream)); }

  private:
    void check(FlashStatus) const;
    decltype(&flash_forward) forward_;
    decltype(&flash_describe) describe_;
    decltype(&flash_last_error) last_error_;
};

struct FreePinned {
    void operator()(uint16_t *data) const { cudaFreeHost(data); }
};
struct FreeDevice {
    void operator()(void *data) const { cudaFree(data); }
};

// The batch's four tensors in host memory, pinned or pageable.
class HostBatch {
  public:
    HostBatch(size_t elements, bool pinned);
    Slice slice;

  private:
    std::vector<std::unique_ptr<uint16_t, FreePinned>> pinned_;
    std::vector<std::unique_ptr<uint16_t[]>> pageable_;
};

// Fills Q, K and V. Every 32nd problem has numbers of its own, the others are those from another place on.
void fill(const flash::Problem &batch, const Slice &host);

// Buffers for one chunk in each of `sets`, and streams.
class DeviceSide {
  public:
    DeviceSide(const Kernel &, const flash::Problem &chunk, int sets, int stream_count);
    ~DeviceSide();
    std::vector<Slice> slices;
    std::vector<FlashParams> params;  // of each set
    std::vector<cudaStream_t> streams;

  private:
    void *allocate(size_t bytes);
    std::vector<std::unique_ptr<void, FreeDevice>> owned_;
};

// What the batch's results are compared with: of every problem one head, of long sequences some of its rows.
class Checker {
  public:
    Checker(const flash::Problem &batch, const Slice &host);
    // What is wrong, or "".
    std::string check(const Slice &host) const;

  private:
    size_t head_of(int b) const;  // where the head of problem b that is looked at begins
    std::vector<uint16_t> rows_of(const uint16_t *tensor, int b) const;
    flash::Problem batch_, part_;
    int rows_;
    std::vector<flash::Reference> references_;
};

}  // namespace streams
