// What the programs here make of a result that is not the expected one: the line and the names, and exit status 1.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

inline const char *name_of(CUresult code) {
    const char *name = nullptr;
    return cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : "no result's number";
}

#define EXPECT(call, wanted)                                                                                \
    do {                                                                                                    \
        const CUresult result_ = (call);                                                                    \
        if (result_ != (wanted)) {                                                                          \
            std::printf("line %d: %s is %s, not %s\n", __LINE__, #call, name_of(result_), name_of(wanted)); \
            std::exit(1);                                                                                   \
        }                                                                                                   \
    } while (0)
#define OK(call) EXPECT(call, CUDA_SUCCESS)
#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition)) {                                         \
            std::printf("line %d: not %s\n", __LINE__, #condition); \
            std::exit(1);                                           \
        }                                                           \
    } while (0)

// Where the test put the modules.
inline std::string &folder() {
    static std::string path;
    return path;
}

inline std::string content(const char *file) {
    std::ifstream stream(folder() + "/" + file, std::ios::binary);
    CHECK(stream);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline CUcontext new_context(unsigned flags = 0) {
    CUdevice device;
    CUcontext context;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuCtxCreate(&context, nullptr, flags, device));
    return context;
}

inline CUfunction function_of(CUmodule module, const char *name) {
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

inline CUmodule load_ptx(const char *file = "kernels.ptx") {
    CUmodule module;
    OK(cuModuleLoadData(&module, content(file).c_str()));
    return module;
}

// Device memory that holds these values.
template <class T>
CUdeviceptr upload(const std::vector<T> &values) {
    CUdeviceptr address;
    OK(cuMemAlloc(&address, values.size() * sizeof(T)));
    OK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)));
    return address;
}

template <class T>
std::vector<T> download(CUdeviceptr address, size_t count) {
    std::vector<T> values(count);
    OK(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
    return values;
}

// n numbers, what `function` (add) makes of them, and whether that is right.
inline void check_add(CUfunction function, int n = 1000, CUstream stream = nullptr) {
    std::vector<float> a(n), b(n);
    for (int i = 0; i < n; ++i) {
        a[i] = static_cast<float>(i);
        b[i] = static_cast<float>(2 * i + 1);
    }
    CUdeviceptr da = upload(a), db = upload(b), dc;
    OK(cuMemAlloc(&dc, n * sizeof(float)));
    void *parameters[] = {&da, &db, &dc, &n};
    OK(cuLaunchKernel(function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    OK(cuStreamSynchronize(stream));
    const std::vector<float> c = download<float>(dc, n);
    for (int i = 0; i < n; ++i) CHECK(c[i] == a[i] + b[i]);
    OK(cuMemFree(da));
    OK(cuMemFree(db));
    OK(cuMemFree(dc));
}
