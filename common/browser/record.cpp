// What a stage's host code launches, as lines of a request (request.h): preloaded into a process that calls a stage,
// this stands between the stage and the CUDA runtime, and notes launches in place of making them. Addresses are those
// of the process; site/page_calls.py puts names in their place.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr size_t kMapBytes = sizeof(CUtensorMap);

struct Map {
    std::array<char, kMapBytes> bytes;
    std::string words;  // what it was made of
};

std::string lines;
std::vector<Map> maps;
decltype(&cuTensorMapEncodeTiled) encode = nullptr;

// The runtime's function of that name; it is in the process, and this library stands before it.
template <class Function>
Function *in_runtime(const char *name) {
    static void *const runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<Function *>(dlsym(runtime, name));
}

template <class Number>
void append(std::string &words, const Number *numbers, size_t count) {
    for (size_t i = 0; i < count; ++i) words += " " + std::to_string(numbers[i]);
}

CUresult noted_encode(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size,
                      const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step,
                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                      CUtensorMapFloatOOBfill fill) {
    const CUresult result =
        encode(to, type, rank, address, size, stride, box, step, interleave, swizzle, promotion, fill);
    if (result != CUDA_SUCCESS) return result;
    Map map;
    std::memcpy(map.bytes.data(), to, kMapBytes);
    map.words = std::to_string(reinterpret_cast<uintptr_t>(address)) + " " + std::to_string(rank);
    append(map.words, size, rank);
    append(map.words, stride, rank - 1);
    append(map.words, box, rank);
    append(map.words, step, rank);
    const int kinds[] = {type, interleave, swizzle, promotion, fill};
    append(map.words, kinds, std::size(kinds));
    maps.push_back(map);
    return result;
}

// Bytes of an argument; behind a semicolon each tensor map in it, by what the newest one with these bytes was made of.
void note_argument(std::span<const char> bytes) {
    std::string digits, found;
    for (size_t at = 0; at < bytes.size(); ++at) {
        for (size_t i = maps.size(); at % alignof(CUtensorMap) == 0 && i-- > 0;) {
            if (at + kMapBytes > bytes.size() || std::memcmp(&bytes[at], maps[i].bytes.data(), kMapBytes)) continue;
            found += ";" + std::to_string(at) + " " + maps[i].words;
            break;
        }
        char two[3];
        std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(bytes[at]));
        digits += two;
    }
    lines += "argument " + digits + found + "\n";
}

cudaError_t note_launch(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes, bool early, void **arguments) {
    const auto name_of = in_runtime<decltype(cudaFuncGetName)>("cudaFuncGetName");
    const auto parameter = in_runtime<decltype(cudaFuncGetParamInfo)>("cudaFuncGetParamInfo");
    const char *name = nullptr;
    const cudaError_t error = name_of(&name, kernel);
    if (error != cudaSuccess) return error;
    lines += std::string("launch ") + name;
    const size_t numbers[] = {grid.x, grid.y, grid.z, block.x, shared_bytes};
    append(lines, numbers, std::size(numbers));
    lines += early ? " early\n" : "\n";
    size_t offset, size;
    for (size_t i = 0; parameter(kernel, i, &offset, &size) == cudaSuccess; ++i)
        note_argument({static_cast<const char *>(arguments[i]), size});
    in_runtime<decltype(cudaGetLastError)>("cudaGetLastError")();  // that there is no further argument
    return cudaSuccess;
}

}  // namespace

// Since the last time; valid until the next one.
extern "C" const char *browser_recorded() {
    static std::string told;
    told = std::exchange(lines, {});
    maps.clear();
    return told.c_str();
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t) {
    return note_launch(kernel, grid, block, shared_bytes, false, arguments);
}

// With the one attribute that the stages' launchers use.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
    bool early = false;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id != cudaLaunchAttributeProgrammaticStreamSerialization) return cudaErrorNotSupported;
        early = config->attrs[i].val.programmaticStreamSerializationAllowed;
    }
    return note_launch(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, early, arguments);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult *found) {
    const auto real = in_runtime<decltype(cudaGetDriverEntryPointByVersion)>(__func__);
    const cudaError_t error = real(name, function, version, flags, found);
    if (error == cudaSuccess && *function && std::strcmp(name, "cuTensorMapEncodeTiled") == 0) {
        encode = reinterpret_cast<decltype(encode)>(*function);
        *function = reinterpret_cast<void *>(&noted_encode);
    }
    return error;
}
