// A kernel that NVRTC compiles when the program runs.
#include <nvrtc.h>

#include "driver.h"

int main() {
    const char *const source = "extern \"C\" __global__ void square(int *x) { *x *= *x; }";
    const char *const options[] = {"--gpu-architecture=compute_80"};
    nvrtcProgram program;
    CHECK(nvrtcCreateProgram(&program, source, "square.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
    CHECK(nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
    size_t bytes = 0;
    CHECK(nvrtcGetPTXSize(program, &bytes) == NVRTC_SUCCESS);
    std::vector<char> ptx(bytes);
    CHECK(nvrtcGetPTX(program, ptx.data()) == NVRTC_SUCCESS);
    new_context();
    CUmodule module;
    OK(cuModuleLoadData(&module, ptx.data()));
    CUdeviceptr x = upload(std::vector<int>{12});
    void *parameters[] = {&x};
    OK(cuLaunchKernel(function_of(module, "square"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<int>(x, 1)[0] == 144);
    std::printf("passed\n");
    return 0;
}
