// What cuTensorMapEncodeTiled takes and refuses: one thing after the other is changed in a map that it takes, and each
// line of output has a name and the error.
#include <functional>
#include <string>
#include <vector>

#include "../check.h"
#include "../tensor_map.h"

struct Description {
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    cuuint32_t dimensions = 3;
    char *address = nullptr;
    cuuint64_t size[6] = {64, 32, 16, 1, 1, 1}, stride[5] = {128, 4096, 65536, 65536, 65536};
    cuuint32_t box[6] = {64, 8, 2, 1, 1, 1}, step[6] = {1, 1, 1, 1, 1, 1};
    CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    int map_offset = 0;
};

int main() {
    char *memory;
    CHECK(cudaMalloc(&memory, 1 << 20));
    const auto encode = encoder();
    using Change = std::function<void(Description &)>;
    // clang-format off
    const std::vector<std::pair<std::string, Change>> changes = {
        {"as_it_is", [](Description &) {}},
        {"box_larger_than_tensor", [](Description &d) { d.size[1] = 4; }},
        {"stride_smaller_than_row", [](Description &d) { d.stride[0] = 16; }},
        {"tensor_larger_than_memory", [](Description &d) { d.size[2] = 1u << 31; }},
        {"size_2_to_the_32", [](Description &d) { d.size[2] = 1ull << 32; }},
        {"one_dimension", [](Description &d) { d.dimensions = 1; }},
        {"five_dimensions", [](Description &d) { d.dimensions = 5; }},
        {"nan_fill", [](Description &d) { d.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; }},
        {"no_swizzle_and_wide", [](Description &d) { d.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; d.box[0] = 256; }},
        {"no_dimension", [](Description &d) { d.dimensions = 0; }},
        {"six_dimensions", [](Description &d) { d.dimensions = 6; }},
        {"map_misaligned", [](Description &d) { d.map_offset = 32; }},
        {"address_misaligned", [](Description &d) { d.address += 8; }},
        {"stride_misaligned", [](Description &d) { d.stride[1] = 4104; }},
        {"stride_2_to_the_40", [](Description &d) { d.stride[1] = 1ull << 40; }},
        {"size_zero", [](Description &d) { d.size[1] = 0; }},
        {"size_over_2_to_the_32", [](Description &d) { d.size[1] = (1ull << 32) + 1; }},
        {"box_zero", [](Description &d) { d.box[1] = 0; }},
        {"box_257", [](Description &d) { d.box[1] = 257; }},
        {"row_not_16_bytes", [](Description &d) { d.box[0] = 12; }},
        {"row_wider_than_swizzle", [](Description &d) { d.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }},
        {"step_zero", [](Description &d) { d.step[1] = 0; }},
        {"step_9", [](Description &d) { d.step[1] = 9; }},
        {"nan_for_integers", [](Description &d) { d.type = CU_TENSOR_MAP_DATA_TYPE_UINT16; d.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; }},
        {"box_of_256_KB", [](Description &d) { d.box[1] = 256; d.box[2] = 8; }},
        {"no_such_type", [](Description &d) { d.type = CUtensorMapDataType(77); }},
        {"no_such_swizzle", [](Description &d) { d.swizzle = CUtensorMapSwizzle(77); }},
        {"interleaved", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }},
        {"slices_of_32_bytes", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; d.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }},
        {"interleaved_2_dimensions", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; d.dimensions = 2; }},
        {"slices_of_32_bytes_swizzled_by_128", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; }},
        {"slices_of_32_bytes_at_16", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; d.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; d.address += 16; }},
        {"slices_of_32_bytes_and_stride", [](Description &d) { d.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; d.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; d.stride[1] = 4112; }},
        {"f32_ftz", [](Description &d) { d.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ; d.box[0] = 32; }},
        {"tf32", [](Description &d) { d.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; d.box[0] = 32; d.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; }},
        {"tf32_ftz", [](Description &d) { d.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ; d.box[0] = 32; }},
        {"atom_32", [](Description &d) { d.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; }},
    };
    // clang-format on
    alignas(128) static char maps[256];
    for (const auto &[name, change] : changes) {
        Description d;
        d.address = memory;
        change(d);
        const CUresult error =
            encode(reinterpret_cast<CUtensorMap *>(maps + d.map_offset), d.type, d.dimensions, d.address, d.size,
                   d.stride, d.box, d.step, d.interleave, d.swizzle, d.promotion, d.fill);
        std::printf("%s %d\n", name.c_str(), int(error));
    }
    CHECK(cudaGetLastError());
}
