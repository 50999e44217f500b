#include "options.h"

#include <command_line.h>

#include <cmath>

namespace flash {

Options parse_options(int argc, char **argv) {
    using command_line::choice, command_line::flag, command_line::number;
    Options result;
    Problem &problem = result.problem;
    problem.Hkv = problem.Nkv = 0;  // as many as of Q, unless given
    auto configuration = command_line::text("configuration", "C", result.configuration,
                                            "of stage 12: the short form of an instance that is built in");
    configuration.otherwise = "the stage's own choice";
    auto heads_kv = number("heads-kv", "H", problem.Hkv, "heads of K and V", 1);
    auto seq_kv = number("seq-kv", "N", problem.Nkv, "rows of K and V", 1);
    heads_kv.otherwise = seq_kv.otherwise = "as many as of Q";
    const auto scale = [&](const std::string &text) {
        constexpr const char *wanted = "a finite number other than 0";
        float value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || *end || !std::isfinite(value) || value == 0) throw std::invalid_argument(wanted);
        problem.scale = value;
    };
    const command_line::CommandLine line(
        argv[0],
        {.usage = "[options]",
         .about = "Runs this stage on random inputs and compares the result with a float64 reference.\n",
         .after = "Exit status: 0 right, 1 wrong result, 2 wrong usage, 3 not supported by this stage or GPU, 4 CUDA "
                  "error.\n"},
        {number("batch", "B", problem.B, "batches", 1),
         number("heads", "H", problem.Hq, "heads of Q", 1),
         heads_kv,
         number("seq", "N", problem.Nq, "rows of Q", 1),
         seq_kv,
         number("dim", "D", problem.d_head, "head dim: 64 or 128", 1),
         choice("dtype", "T", problem.dtype, "", {{"bf16", FLASH_BF16}, {"fp16", FLASH_FP16}, {"e4m3", FLASH_E4M3}}),
         choice("layout", "L", problem.layout, "how the tensors lie in memory",
                {{"bhnd", Layout::bhnd}, {"bnhd", Layout::bnhd}}),
         flag("causal", problem.causal, "query i sees keys up to i + seq_kv - seq only"),
         {"scale", "X", "factor of QKᵀ", "1 / sqrt(dim)", scale},
         configuration,
         number<uint64_t>("seed", "S", result.seed, "of the inputs", 0),
         flag("bench", result.bench, "time it, too (on a GPU, in a release build)"),
         number("iterations", "I", result.iterations, "timed launches", 1),
         flag("once", result.once, "one launch and no comparison: for ncu, compute-sanitizer and cuda-gdb"),
         flag("describe", result.describe, "print limits, tile sizes, registers and shared memory; run nothing"),
         flag("json", result.json, "print one JSON object")});
    line.parse(argc, argv);
    if (result.once && result.bench) line.stop("--once is one launch, --bench is many: give one of them");
    if (problem.Hkv == 0) problem.Hkv = problem.Hq;
    if (problem.Nkv == 0) problem.Nkv = problem.Nq;
    return result;
}

}  // namespace flash
