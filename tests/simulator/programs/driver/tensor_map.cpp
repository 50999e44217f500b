// A tensor map by cuTensorMapEncodeTiled of the driver itself, and a kernel of a module that copies by it.
//
//     tensor_map FOLDER WAIT_FIRST
#include "driver.h"

int main(int, char **argv) {
    folder() = argv[1];
    int wait_first = std::atoi(argv[2]);
    new_context();
    constexpr int kColumns = 40, kRows = 20;
    std::vector<float> matrix(kColumns * kRows);
    for (int i = 0; i < kColumns * kRows; ++i) matrix[i] = static_cast<float>(i);
    CUdeviceptr address = upload(matrix), out = upload(std::vector<float>(128));
    alignas(64) CUtensorMap map;
    const cuuint64_t size[] = {kColumns, kRows}, stride[] = {kColumns * sizeof(float)};
    const cuuint32_t box[] = {16, 8}, step[] = {1, 1};
    const auto encode = [&](cuuint32_t rank) {
        return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, reinterpret_cast<void *>(address),
                                      size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    EXPECT(encode(6), CUDA_ERROR_INVALID_VALUE);
    OK(encode(2));
    CUfunction copy = function_of(load_ptx("copy_box.ptx"), "copy_box");
    int x = 32, y = 15;  // the box reaches past both edges
    void *parameters[] = {&map, &out, &x, &y, &wait_first};
    OK(cuLaunchKernel(copy, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    const CUresult result = cuCtxSynchronize();
    if (!wait_first) {
        EXPECT(result, CUDA_ERROR_LAUNCH_FAILED);
        return 0;
    }
    OK(result);
    const std::vector<float> values = download<float>(out, 128);
    for (int row = 0; row < 8; ++row) {
        for (int column = 0; column < 16; ++column) {
            const bool inside = x + column < kColumns && y + row < kRows;
            CHECK(values[row * 16 + column] == (inside ? matrix[(y + row) * kColumns + x + column] : 0));
        }
    }
    std::printf("passed\n");
    return 0;
}
