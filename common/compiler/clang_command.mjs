// What clang is told to make LLVM IR of device code, in node (clang.mjs) and in a page (docs/site/run/clang.js).
//
// includes: folders of headers; lines: whether the IR knows its source lines; options: more of them.
export function clangCommand({ source, output, includes, lines = true, options = [] }) {
  return [
    "clang -cc1 -triple nvptx64-nvidia-cuda -fcuda-is-device -x cuda -target-cpu sm_90a -target-feature +ptx87 -O2",
    "-std=c++20 -emit-llvm -nostdsysteminc -nobuiltininc -include cuda_runtime.h",
    ...(lines ? ["-debug-info-kind=line-tables-only"] : []),
    "-mllvm -inline-threshold=2475", // as LLVM has it for GPUs: a call would take arrays out of registers
    "-mllvm -unroll-threshold=2000", // a loop over a tile's registers that stays would do so, too; nvcc unrolls them
    ...includes.map((one) => `-internal-isystem ${one}`),
    ...options,
    source,
    `-o ${output}`,
  ].join(" ");
}
