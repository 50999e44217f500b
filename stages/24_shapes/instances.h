// clang-format off
static const flash::Table table = {{
    instance<__nv_bfloat16, 128, Configuration{128, 128, 2, 2, false, 24, 240}>("(BF16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240"),
    instance<__nv_bfloat16, 64, Configuration{128, 128, 2, 2, false, 24, 240}>("(BF16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240"),
    instance<__nv_bfloat16, 64, Configuration{128, 128, 2, 1, true, 24, 240}>("(BF16, 64, 128, 128, 12): kv_buffers_2+turns+registers_24_240"),
    instance<__nv_bfloat16, 64, Configuration{192, 128, 3, 1, true, 32, 160}>("(BF16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160"),
    instance<__half, 128, Configuration{128, 128, 2, 2, false, 24, 240}>("(FP16, 128, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240"),
    instance<__half, 64, Configuration{128, 128, 2, 2, false, 24, 240}>("(FP16, 64, 128, 128, 12): kv_buffers_2+parts_2+registers_24_240"),
    instance<__half, 64, Configuration{128, 128, 2, 1, true, 24, 240}>("(FP16, 64, 128, 128, 12): kv_buffers_2+turns+registers_24_240"),
    instance<__half, 64, Configuration{192, 128, 3, 1, true, 32, 160}>("(FP16, 64, 192, 128, 16): kv_buffers_3+turns+registers_32_160"),
}, {}};
