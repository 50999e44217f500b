#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace streams {
namespace {

constexpr char help[] =
    "usage: %s [options]\n"
    "Runs a batch of attention problems that lives in host memory, chunk by chunk, and checks every result.\n\n"
    "  --variant V,V      pageable, pinned, async, streams, engines, pageable_async (all)\n"
    "  --chunks C,C       into how many the batch is cut; each must divide it (4)\n"
    "  --streams S,S      of the variants streams and pageable_async; sets of buffers of engines (2)\n"
    "  --batch B          problems in the batch (8)\n"
    "  --heads H          (2)\n"
    "  --seq N            rows of Q, K and V (128)\n"
    "  --dim D            head dim: 64 or 128 (64)\n"
    "  --dtype T          bf16 or fp16 (bf16)\n"
    "  --stage NN         whose kernel computes (03: any GPU)\n"
    "  --repeat R         timed runs of each variant, on a GPU (5)\n"
    "  --json FILE        times and timelines of all runs\n"
    "  --bandwidth        only measure copies (on a GPU), as JSON\n"
    "  --help\n\n"
    "Exit status: 0 right, 1 wrong result, 2 wrong usage, 3 not supported, 4 CUDA error.\n";

[[noreturn]] void usage_error(const char *program, const std::string &text) {
    std::fprintf(stderr, "%s: %s (--help lists the options)\n", program, text.c_str());
    std::exit(wrong_usage);
}

std::vector<std::string> split(const char *text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

}  // namespace

Options parse_options(int argc, char **argv) {
    const option known[] = {{"variant", required_argument, nullptr, 'v'}, {"chunks", required_argument, nullptr, 'c'},
                            {"streams", required_argument, nullptr, 's'}, {"batch", required_argument, nullptr, 'b'},
                            {"heads", required_argument, nullptr, 'h'},   {"seq", required_argument, nullptr, 'n'},
                            {"dim", required_argument, nullptr, 'd'},     {"dtype", required_argument, nullptr, 't'},
                            {"stage", required_argument, nullptr, 'k'},   {"repeat", required_argument, nullptr, 'r'},
                            {"json", required_argument, nullptr, 'j'},    {"bandwidth", no_argument, nullptr, 'w'},
                            {"help", no_argument, nullptr, '?' + 1},      {nullptr, 0, nullptr, 0}};
    Options result;
    int index = 0;
    const auto positive = [&](const std::string &text) {
        char *end = nullptr;
        errno = 0;
        const long value = std::strtol(text.c_str(), &end, 10);
        if (errno || text.empty() || *end || value < 1 || value > INT_MAX) {
            usage_error(argv[0],
                        "--" + std::string(known[index].name) + " " + text + ": expected a positive whole number");
        }
        return static_cast<int>(value);
    };
    const auto numbers = [&] {
        std::vector<int> values;
        for (const std::string &part : split(optarg)) values.push_back(positive(part));
        if (values.empty()) usage_error(argv[0], "--" + std::string(known[index].name) + ": expected numbers");
        return values;
    };
    for (int which; (which = getopt_long(argc, argv, "", known, &index)) != -1;) {
        switch (which) {
            case 'v':
                for (const std::string &name : split(optarg)) {
                    const auto *found = std::find_if(std::begin(variants), std::end(variants),
                                                     [&](const Variant &variant) { return variant.name == name; });
                    if (found == std::end(variants))
                        usage_error(argv[0], "--variant " + name + ": there is none of that name");
                    result.chosen.push_back(found);
                }
                break;
            case 'c':
                result.chunks = numbers();
                break;
            case 's':
                result.streams = numbers();
                break;
            case 'b':
                result.problem.B = positive(optarg);
                break;
            case 'h':
                result.problem.Hq = result.problem.Hkv = positive(optarg);
                break;
            case 'n':
                result.problem.Nq = result.problem.Nkv = positive(optarg);
                break;
            case 'd':
                result.problem.d_head = positive(optarg);
                break;
            case 't':
                if (std::strcmp(optarg, "bf16") && std::strcmp(optarg, "fp16")) {
                    usage_error(argv[0], "--dtype " + std::string(optarg) + ": expected bf16 or fp16");
                }
                result.problem.dtype = std::strcmp(optarg, "bf16") ? FLASH_FP16 : FLASH_BF16;
                break;
            case 'k':
                result.stage = positive(optarg);
                break;
            case 'r':
                result.repeat = positive(optarg);
                break;
            case 'j':
                result.json = optarg;
                break;
            case 'w':
                result.bandwidth = true;
                break;
            case '?' + 1:
                std::printf(help, argv[0]);
                std::exit(right);
            default:
                std::fprintf(stderr, "%s --help lists the options\n", argv[0]);
                std::exit(wrong_usage);
        }
    }
    if (optind < argc) usage_error(argv[0], "unexpected argument '" + std::string(argv[optind]) + "'");
    for (int chunks : result.chunks) {
        if (result.problem.B % chunks) {
            usage_error(argv[0], "--chunks " + std::to_string(chunks) + ": must divide the batch of " +
                                     std::to_string(result.problem.B) + " problems");
        }
    }
    if (result.chosen.empty()) {
        for (const Variant &variant : variants) result.chosen.push_back(&variant);
    }
    return result;
}

}  // namespace streams
