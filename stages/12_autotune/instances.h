// Written by `make results` (flashladder/tuning/instances.py): what is built, and the fastest where tuned.
// clang-format off
INSTANCE(__half, 64, "(FP16, 64, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+lean_ldmatrix", 128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, true, true, true, 0)
INSTANCE(__half, 128, "(FP16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+lean_ldmatrix", 128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, true, true, true, 0)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+lean_ldmatrix", 128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, true, true, true, 0)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+lean_ldmatrix", 128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, true, true, true, 0)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles", 128, 64, 4, true, true, true, 2, 2, 2, false, 1, 1, false, false, false, false, 0)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 64, 4): swizzled+load_0_0_0_tiles", 128, 64, 4, false, false, true, 0, 0, 0, false, 1, 1, false, false, false, false, 0)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 64, 128, 4): async+swizzled+load_0_1_1_tiles+Q_registers+fragment_buffers_2+opt_softmax+lean", 64, 128, 4, true, false, true, 0, 1, 1, true, 1, 2, true, false, true, false, 0)
INSTANCE(__nv_bfloat16, 64, "(BF16, 64, 128, 128, 4): async+eager+swizzled+load_2_1_1_tiles+kv_buffers_2+opt_softmax+lean+blocks_2", 128, 128, 4, true, true, true, 2, 1, 1, false, 2, 1, true, false, true, false, 2)
INSTANCE(__nv_bfloat16, 128, "(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+blocks_2", 128, 64, 4, true, true, true, 2, 2, 2, false, 2, 1, true, true, true, false, 2)
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 64, 1, 1073741824, "(BF16, 64, 128, 128, 4): async+eager+swizzled+load_2_1_1_tiles+kv_buffers_2+opt_softmax+lean+blocks_2")
CHOICE("NVIDIA H200", 90, 132, FLASH_BF16, 128, 1, 1073741824, "(BF16, 128, 128, 64, 4): async+eager+swizzled+load_2_2_2_tiles+kv_buffers_2+opt_softmax+skip_rescale+lean+blocks_2")
// clang-format on
