// Device memory that is freed with its scope, and CUDA's errors as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace flash {

struct CudaError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void must(cudaError_t error, const std::string &what) {
    if (error != cudaSuccess) throw CudaError(what + ": " + cudaGetErrorString(error));
}

// Device memory with a copy of `host` in it; a null pointer where that is empty.
class DeviceArray {
  public:
    template <typename T>
    explicit DeviceArray(const std::vector<T> &host) : bytes_(host.size() * sizeof(T)) {
        if (!bytes_) return;
        must(cudaMalloc(&data_, bytes_), "cudaMalloc");
        must(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice), "copy to the device");
    }
    // Every 4 and every 2 bytes of it a NaN: what a kernel reads before it has written there shows in the result.
    explicit DeviceArray(size_t bytes) : bytes_(bytes) {
        if (!bytes) return;
        must(cudaMalloc(&data_, bytes), "cudaMalloc");
        must(cudaMemset(data_, 0xff, bytes), "cudaMemset");
    }
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray &) = delete;
    void *data() const { return data_; }
    template <typename T>
    std::vector<T> to_host() const {
        std::vector<T> host(bytes_ / sizeof(T));
        must(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost), "copy from the device");
        return host;
    }

  private:
    void *data_ = nullptr;
    size_t bytes_;
};

}  // namespace flash
