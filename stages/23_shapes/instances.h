// Written by `make results` (flashladder/tuning/shape_table.py): what is built, and which of them runs what: measured,
// or predicted from what its line says.
// clang-format off
#define INSTANCE(T, d_head, short_form, ...) instance<T, d_head, Configuration{__VA_ARGS__}>(short_form),
#define CHOICE(...) {__VA_ARGS__},
static const flash::Table table = {{
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160", 192, 128, 3, 1, true, false, 32, 160, 1)
INSTANCE(__half, 128, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", 128, 128, 2, 2, false, true, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", 192, 128, 4, 1, true, false, 32, 160, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", 128, 128, 2, 2, false, true, 24, 240, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+q_in_registers+registers_24_240", 128, 128, 2, 1, true, true, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", 64, 128, 2, 1, false, false, 24, 160, 2)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", 192, 128, 4, 1, true, false, 32, 160, 1)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 128, 12): kv_buffers_4+turns+q_in_registers+registers_24_240", 128, 128, 4, 1, true, true, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 128, 128, 12): kv_buffers_4+turns+q_in_registers+registers_24_240", 128, 128, 4, 1, true, true, 24, 240, 1)
INSTANCE(__half, 128, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__half, 64, "(FP16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240", 128, 128, 2, 2, false, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+registers_24_240", 128, 128, 2, 1, true, false, 24, 240, 1)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", 64, 128, 2, 1, false, false, 24, 160, 2)
}, {
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 1073741824, "(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 5792, "(BF16, 64, 128, 128, 12): kv_buffers_4+turns+q_in_registers+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 5793, 11585, "(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 11586, 1073741824, "(BF16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 724, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+q_in_registers+registers_24_240", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 725, 1073741824, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", flash::full, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 1448, "(BF16, 128, 128, 128, 12): kv_buffers_2+turns+q_in_registers+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1449, 1073741824, "(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", flash::causal, "")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 128, 1, 1073741824, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", flash::full, "predicted from bf16, of which it is the fastest on long sequences; three consumers have no registers for S, P and O at d_head 128")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 128, 1, 1073741824, "(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+q_in_registers+registers_24_240", flash::causal, "predicted from bf16, of which it is the fastest on long sequences; three consumers have no registers for S, P and O at d_head 128")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 1, 128, "(FP16, 64, 64, 128, 8): kv_buffers_2+registers_24_160+blocks_2", flash::full, "predicted from counting: a query tile of 192 rows would have 64 or more for nothing")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 129, 1073741824, "(FP16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", flash::full, "predicted from bf16, of which it is the fastest at all lengths")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 1, 5792, "(FP16, 64, 128, 128, 12): kv_buffers_4+turns+q_in_registers+registers_24_240", flash::causal, "predicted from bf16, of which it is the fastest up to 4096")
CHOICE("NVIDIA H200", 90, 132, FLASH_FP16, 64, 5793, 1073741824, "(FP16, 64, 192, 128, 16): kv_buffers_4+turns+registers_32_160", flash::causal, "predicted from bf16, of which it is within one percent of the fastest at 8192 and 16384")
}};
#undef INSTANCE
#undef CHOICE
// clang-format on
