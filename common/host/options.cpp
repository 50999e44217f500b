#include "options.h"

#include <getopt.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace flash {
namespace {

constexpr char help[] =
    "usage: %s [options]\n"
    "Runs this stage on random inputs and compares the result with a float64 reference.\n\n"
    "  --batch B           batches (1)\n"
    "  --heads H           heads of Q (2)\n"
    "  --heads-kv H        heads of K and V (as many as of Q)\n"
    "  --seq N             rows of Q (256)\n"
    "  --seq-kv N          rows of K and V (as many as of Q)\n"
    "  --dim D             head dim: 64 or 128 (128)\n"
    "  --dtype T           bf16 or fp16 (bf16)\n"
    "  --layout L          bhnd or bnhd: how the tensors lie in memory (bhnd)\n"
    "  --causal            query i sees keys up to i + seq_kv - seq only\n"
    "  --scale X           factor of QKᵀ (1 / sqrt(dim))\n"
    "  --seed S            of the inputs (1)\n"
    "  --bench             time it, too (on a GPU, in a release build)\n"
    "  --iterations I      timed launches (20)\n"
    "  --once              one launch and no comparison: for ncu, compute-sanitizer and cuda-gdb\n"
    "  --describe          print limits, tile sizes, registers and shared memory; run nothing\n"
    "  --json              print one JSON object\n"
    "  --help\n\n"
    "Exit status: 0 right, 1 wrong result, 2 wrong usage, 3 not supported by this stage or GPU, 4 CUDA error.\n";

[[noreturn]] void usage_error(const char *program, const char *option, const char *value, const char *wanted) {
    std::fprintf(stderr, "%s: --%s %s: expected %s (--help lists the options)\n", program, option, value, wanted);
    std::exit(2);
}

}  // namespace

Options parse_options(int argc, char **argv) {
    enum {
        batch,
        heads,
        heads_kv,
        seq,
        seq_kv,
        dim,
        dtype,
        layout,
        causal,
        scale,
        seed,
        bench,
        iterations,
        once,
        describe,
        json,
        help_option
    };
    const option options[] = {{"batch", required_argument, nullptr, batch},
                              {"heads", required_argument, nullptr, heads},
                              {"heads-kv", required_argument, nullptr, heads_kv},
                              {"seq", required_argument, nullptr, seq},
                              {"seq-kv", required_argument, nullptr, seq_kv},
                              {"dim", required_argument, nullptr, dim},
                              {"dtype", required_argument, nullptr, dtype},
                              {"layout", required_argument, nullptr, layout},
                              {"causal", no_argument, nullptr, causal},
                              {"scale", required_argument, nullptr, scale},
                              {"seed", required_argument, nullptr, seed},
                              {"bench", no_argument, nullptr, bench},
                              {"iterations", required_argument, nullptr, iterations},
                              {"once", no_argument, nullptr, once},
                              {"describe", no_argument, nullptr, describe},
                              {"json", no_argument, nullptr, json},
                              {"help", no_argument, nullptr, help_option},
                              {nullptr, 0, nullptr, 0}};

    Options result;
    Problem &problem = result.problem;
    problem.Hkv = problem.Nkv = 0;  // as many as of Q, unless given
    int index = 0;
    const auto whole_number = [&](int least, const char *wanted) -> int {
        char *end = nullptr;
        errno = 0;
        const long value = std::strtol(optarg, &end, 10);
        if (errno || end == optarg || *end || value < least || value > INT_MAX) {
            usage_error(argv[0], options[index].name, optarg, wanted);
        }
        return static_cast<int>(value);
    };
    const auto positive = [&] { return whole_number(1, "a positive whole number"); };
    for (int which; (which = getopt_long(argc, argv, "", options, &index)) != -1;) {
        switch (which) {
            case batch:
                problem.B = positive();
                break;
            case heads:
                problem.Hq = positive();
                break;
            case heads_kv:
                problem.Hkv = positive();
                break;
            case seq:
                problem.Nq = positive();
                break;
            case seq_kv:
                problem.Nkv = positive();
                break;
            case dim:
                problem.d_head = positive();
                break;
            case seed:
                result.seed = whole_number(0, "a whole number");
                break;
            case iterations:
                result.iterations = positive();
                break;
            case dtype:
                if (!std::strcmp(optarg, "fp16"))
                    problem.dtype = FLASH_FP16;
                else if (!std::strcmp(optarg, "bf16"))
                    problem.dtype = FLASH_BF16;
                else
                    usage_error(argv[0], "dtype", optarg, "fp16 or bf16");
                break;
            case layout:
                if (!std::strcmp(optarg, "bhnd"))
                    problem.layout = Layout::bhnd;
                else if (!std::strcmp(optarg, "bnhd"))
                    problem.layout = Layout::bnhd;
                else
                    usage_error(argv[0], "layout", optarg, "bhnd or bnhd");
                break;
            case scale: {
                char *end = nullptr;
                problem.scale = std::strtof(optarg, &end);
                if (end == optarg || *end || problem.scale == 0.0f) {
                    usage_error(argv[0], "scale", optarg, "a number other than 0");
                }
                break;
            }
            case causal:
                problem.causal = true;
                break;
            case bench:
                result.bench = true;
                break;
            case once:
                result.once = true;
                break;
            case describe:
                result.describe = true;
                break;
            case json:
                result.json = true;
                break;
            case help_option:
                std::printf(help, argv[0]);
                std::exit(0);
            default:
                std::fprintf(stderr, "%s --help lists the options\n", argv[0]);
                std::exit(2);
        }
    }
    if (optind < argc) {
        std::fprintf(stderr, "%s: unexpected argument '%s' (--help lists the options)\n", argv[0], argv[optind]);
        std::exit(2);
    }
    if (result.once && result.bench) {
        std::fprintf(stderr, "%s: --once is one launch, --bench is many: give one of them\n", argv[0]);
        std::exit(2);
    }
    if (problem.Hkv == 0) problem.Hkv = problem.Hq;
    if (problem.Nkv == 0) problem.Nkv = problem.Nq;
    return result;
}

}  // namespace flash
