// Tensor maps: what TMA knows of a tensor in global memory and of the boxes that it copies. NVIDIA's 128 bytes are
// opaque, so the simulator has an encoding of its own; its runtime makes them and its kernels read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace warpsim {

inline constexpr unsigned kTensorMapBytes = 128, kTensorMapAlignment = 64;
inline constexpr unsigned kMostDimensions = 5;
inline constexpr unsigned kBoxAlignment = 128;  // of a box in shared memory
inline constexpr unsigned kGranularity = 16;    // bytes: of the address, of strides, rows and where a box begins in one

// In the order of CUDA's enumerations. (tensormap.replace numbers the types from f64 on in another way.)
enum class TensorType : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz, count_ };
enum class TensorSwizzle : uint8_t { none, bytes_32, bytes_64, bytes_128, count_ };
enum class TensorFill : uint8_t { zero, nan, count_ };
// Channels in slices of 16 or 32 bytes, as in NC/8HWC8: dimension 0 is W, whose elements are whole slices' worth of one
// pixel, the last but one numbers the slices, of which a box has one, the last is N. (So an H100 has it.)
enum class TensorInterleave : uint8_t { none, bytes_16, bytes_32, count_ };

// Dimension 0 is the inner one: its elements lie side by side, pitch() bytes apart.
struct TensorMap {
    uint64_t address = 0;                            // device address of element 0
    std::array<uint64_t, kMostDimensions> size{};    // elements
    std::array<uint64_t, kMostDimensions> stride{};  // bytes; [0] is not used
    std::array<uint32_t, kMostDimensions> box{};     // elements that the box spans
    std::array<uint32_t, kMostDimensions> step{};    // of which every step-th is copied; [0] counts if interleaved
    uint32_t dimensions = 0;
    TensorType type = TensorType::u8;
    TensorSwizzle swizzle = TensorSwizzle::none;
    TensorFill fill = TensorFill::zero;
    TensorInterleave interleave = TensorInterleave::none;

    bool interleaved() const { return interleave != TensorInterleave::none; }
    uint32_t element_bytes() const;
    uint32_t pitch() const;  // bytes of what dimension 0 counts: elements, or slices of pixels
    uint32_t step_of(unsigned dimension) const;
    uint32_t count(unsigned dimension) const;  // elements of the box that are copied
    uint64_t box_bytes() const;                // in shared memory
};

const char *tensor_type_name(TensorType);  // "f16"
bool is_float(TensorType);
uint32_t swizzle_bytes(TensorSwizzle);  // of a swizzled row; 0: none
// Where a swizzle puts what would lie at this address of shared memory: bits 4 to 6 (5, 4) change, by bits 7 to 9.
uint32_t swizzled(TensorSwizzle, uint32_t address);

// What is wrong with it, as NVIDIA's encoder has it: "the box has 300 elements in dimension 1, and 256 are possible".
// Empty: nothing.
std::string tensor_map_fault(const TensorMap &);

void encode_tensor_map(const TensorMap &, std::byte *to);
// False: these 128 bytes are none of encode_tensor_map's.
bool decode_tensor_map(const std::byte *from, TensorMap &);

}  // namespace warpsim
