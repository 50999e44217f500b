// Functions: their attributes, launches and occupancy.
#include "cases.h"

namespace {

CASE(function_attributes) {
    new_context();
    CUmodule module = load_ptx();
    CUfunction function = function_of(module, "with_dynamic_shared"), bounded = function_of(module, "bounded");
    int value = 0;
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
    CHECK(value == 128);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    CHECK(value > 0);
    OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED));
    CUmodule same;
    OK(cuFuncGetModule(&same, function));
    CHECK(same == module);
    const char *name = nullptr;
    OK(cuFuncGetName(&name, bounded));
    CHECK(!std::strcmp(name, "bounded"));
    unsigned count = 0;
    OK(cuModuleGetFunctionCount(&count, module));
    CHECK(count >= 9);
    // More than 48 KB of dynamic shared memory must be asked for.
    CUdeviceptr out = upload(std::vector<int>(64));
    int n = 64;
    void *parameters[] = {&out, &n};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 60000, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 60000, nullptr, parameters, nullptr));
    const std::vector<int> values = download<int>(out, 64);
    for (int i = 0; i < 64; ++i) CHECK(values[i] == 63 - i);
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), CUDA_ERROR_INVALID_VALUE);
}

CASE(packed_parameters) {
    new_context();
    CUfunction function = function_of(load_ptx(), "mixed_parameters");
    CUdeviceptr out = upload(std::vector<double>{0});
    struct {
        char small;
        double large;
        short middle;
        CUdeviceptr out;
    } buffer{3, 0.5, 40, out};
    size_t bytes = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    CHECK(download<double>(out, 1)[0] == 43.5);
    size_t offset = 0, size = 0;
    OK(cuFuncGetParamInfo(function, 3, &offset, &size));
    CHECK(offset == offsetof(decltype(buffer), out) && size == 8);
    EXPECT(cuFuncGetParamInfo(function, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    bytes -= 8;
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
    void *parameters[] = {&buffer.small, &buffer.large, &buffer.middle, &buffer.out};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

CASE(occupancy) {
    new_context();
    CUmodule module = load_ptx();
    CUfunction function = function_of(module, "add"), bounded = function_of(module, "bounded");
    int blocks = 0, grid = 0, block = 0, multiprocessors = 0, threads = 0;
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    CHECK(blocks == threads / 256);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
    CHECK(block * (grid / multiprocessors) == threads && grid % multiprocessors == 0);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, nullptr, 0, 0));
    CHECK(block == 128);
    OK(cuOccupancyMaxPotentialBlockSize(
        &grid, &block, function, [](int size) { return size > 64 ? size_t{1} << 30 : size_t{0}; }, 0, 0));
    CHECK(block == 64);  // no larger one fits
    size_t bytes = 0;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 128));
    CHECK(bytes > 48 * 1024);
}

CUlaunchConfig config_of(unsigned grid, unsigned block, CUlaunchAttribute *attributes, unsigned count) {
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.blockDimX = block;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.attrs = attributes;
    config.numAttrs = count;
    return config;
}

CASE(launches_with_attributes) {
    new_context();
    CUmodule module = load_ptx("kernels_sm_90.ptx");
    CUdeviceptr out = upload(std::vector<unsigned>(8));
    void *parameters[] = {&out};
    CUlaunchAttribute attributes[2]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = 4;
    attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
    CUlaunchConfig config = config_of(8, 32, attributes, 1);
    CUfunction ranks = function_of(module, "cluster_ranks");
    OK(cuLaunchKernelEx(&config, ranks, parameters, nullptr));
    CHECK((download<unsigned>(out, 8) == std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3}));
    int clusters = 0;
    OK(cuOccupancyMaxActiveClusters(&clusters, ranks, &config));
    CHECK(clusters > 0);
    config.gridDimX = 6;  // no multiple of the cluster
    EXPECT(cuLaunchKernelEx(&config, ranks, parameters, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CUdeviceptr value = upload(std::vector<int>{1});
    void *of_value[] = {&value};
    attributes[0] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[0].value.programmaticStreamSerializationAllowed = 1;
    config = config_of(1, 1, attributes, 1);
    CUfunction after = function_of(module, "wait_for_the_kernel_before");
    for (int i = 0; i < 2; ++i) OK(cuLaunchKernelEx(&config, after, of_value, nullptr));
    CHECK(download<int>(value, 1)[0] == 3);
    EXPECT(cuLaunchKernelEx(nullptr, after, of_value, nullptr), CUDA_ERROR_INVALID_VALUE);
}

CASE(cooperative_launches) {
    new_context();
    CUfunction meet = function_of(load_ptx(), "meet");
    CUdeviceptr arrived = upload(std::vector<unsigned>{0}), parts = upload(std::vector<int>(4)),
                sums = upload(std::vector<int>(4));
    void *parameters[] = {&arrived, &parts, &sums};
    OK(cuLaunchCooperativeKernel(meet, 4, 1, 1, 1, 1, 1, 0, nullptr, parameters));
    CHECK(download<int>(sums, 4) == std::vector<int>(4, 10));
    EXPECT(cuLaunchCooperativeKernel(meet, 1000000, 1, 1, 1024, 1, 1, 0, nullptr, parameters),
           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

CASE(illegal_address) {
    new_context();
    CUfunction function = function_of(load_ptx(), "add_one_too_many");
    const std::vector<float> ones(100, 1.0f);
    CUdeviceptr a = upload(ones), b = upload(ones), c = upload(ones);
    int n = 100;
    void *parameters[] = {&a, &b, &c, &n};
    OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(cuMemFree(a), CUDA_ERROR_ILLEGAL_ADDRESS);  // as all later calls
    OK(cuDevicePrimaryCtxReset(0));
}

}  // namespace
