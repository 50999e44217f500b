#include "options.h"

#include <command_line.h>

namespace streams {
namespace {

// "streams,engines"
std::vector<const Variant *> parse_variants(const std::string &text) {
    std::vector<const Variant *> chosen;
    for (const std::string &name : command_line::split(text)) {
        std::string names;
        const Variant *found = nullptr;
        for (const Variant &variant : variants) {
            names += (names.empty() ? "" : ", ") + std::string(variant.name);
            if (variant.name == name) found = &variant;
        }
        if (!found) throw std::invalid_argument("one or several of " + names);
        chosen.push_back(found);
    }
    return chosen;
}

}  // namespace

Options parse_options(int argc, char **argv) {
    using command_line::number, command_line::numbers;
    Options result;
    flash::Problem &problem = result.problem;
    const command_line::CommandLine line(
        argv[0],
        {.usage = "[options]",
         .about =
             "Runs a batch of attention problems that lives in host memory, chunk by chunk, and checks every result.\n",
         .after = "Exit status: 0 right, 1 wrong result, 2 wrong usage, 3 not supported, 4 CUDA error.\n",
         .wrong_usage = wrong_usage},
        {{"variant", "V,V", "pageable, pinned, async, streams, engines, pageable_async", "all",
          [&](const std::string &text) { result.chosen = parse_variants(text); }},
         numbers("chunks", "C,C", result.chunks, "into how many the batch is cut; each must divide it", 1),
         numbers("streams", "S,S", result.streams,
                 "of the variants streams and pageable_async; sets of buffers of engines", 1),
         number("batch", "B", problem.B, "problems in the batch", 1),
         number("heads", "H", problem.Hq, "heads of Q, K and V", 1),
         number("seq", "N", problem.Nq, "rows of Q, K and V", 1),
         number("dim", "D", problem.d_head, "head dim: 64 or 128", 1),
         command_line::choice("dtype", "T", problem.dtype, "", {{"bf16", FLASH_BF16}, {"fp16", FLASH_FP16}}),
         number("stage", "NN", result.stage, "whose kernel computes; 3 runs on any GPU", 1),
         number("repeat", "R", result.repeat, "timed runs of each variant, on a GPU", 1),
         command_line::text("json", "FILE", result.json, "times and timelines of all runs"),
         command_line::flag("bandwidth", result.bandwidth, "only measure copies (on a GPU), as JSON")});
    line.parse(argc, argv);
    problem.Hkv = problem.Hq;
    problem.Nkv = problem.Nq;
    for (int chunks : result.chunks) {
        if (problem.B % chunks) {
            std::string told = "--chunks ";
            told.append(std::to_string(chunks)).append(": must divide the batch of ");
            line.stop(told.append(std::to_string(problem.B)).append(" problems"));
        }
    }
    if (result.chosen.empty()) {
        for (const Variant &variant : variants) result.chosen.push_back(&variant);
    }
    return result;
}

}  // namespace streams
