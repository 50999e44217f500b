// Written by `make results` (flashladder/tuning/shape_table.py): what is built, and which of them runs what: measured,
// or predicted from what its line says.
// clang-format off
#define INSTANCE(T, d_head, short_form, ...) instance<T, d_head, Configuration{__VA_ARGS__}>(short_form),
#define CHOICE(...) {__VA_ARGS__},
static const flash::Table table = {{
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", 192, 128, 4, 1, true, false, 32, 160, 1)
INSTANCE(__half, 128, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", 192, 128, 4, 1, true, false, 32, 160, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+registers_24_240", 128, 128, 2, 1, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+registers_24_240", 128, 128, 2, 1, true, false, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", 64, 128, 2, 1, false, false, 24, 160, 2)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", 64, 128, 2, 1, false, false, 24, 160, 2)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 128, 12): kv_buffers_4+parts_2+registers_24_240", 128, 128, 4, 2, false, false, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160", 192, 128, 3, 1, true, false, 32, 160, 1)
}, {
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 1073741824, "(BF16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 724, "(BF16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 725, 1448, "(BF16, 64, 128, 128, 12): kv_buffers_4+parts_2+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1449, 1073741824, "(BF16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 724, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+registers_24_240", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 725, 5792, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 5793, 1073741824, "(BF16, 128, 128, 128, 12): kv_buffers_2+registers_24_240", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 724, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 725, 1073741824, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 128, 1, 1073741824, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", flash::full, "predicted from stage 23, which it is: three consumers have no registers for S, P and O at d_head 128")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 128, 1, 1073741824, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", flash::causal, "predicted from stage 23, which it is: three consumers have no registers for S, P and O at d_head 128")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 1, 128, "(FP16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", flash::full, "predicted from counting: a query tile of 192 rows would have 64 or more for nothing")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 129, 1073741824, "(FP16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", flash::full, "predicted from a preliminary run: three consumers with turns and 4 buffers, or 2, were ahead of all others at all lengths")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 1, 1073741824, "(FP16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", flash::causal, "predicted from a preliminary run: one consumer in each of two blocks was ahead of all others at most lengths")
}};
#undef INSTANCE
#undef CHOICE
// clang-format on
