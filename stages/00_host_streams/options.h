// The program's command line, and the variants that it can run.
#pragma once

#include <string>
#include <vector>

#include "host_streams.h"
#include "problem.h"

namespace streams {

enum ExitStatus { right = 0, wrong = 1, wrong_usage = 2, unsupported = 3, cuda_error = 4 };

struct Variant {
    const char *name;
    const char *title;
    void (*run)(const Work &);
    bool pinned;
    bool uses_streams;  // their number makes a difference
};
inline constexpr Variant variants[] = {
    {"pageable", "pageable memory, blocking copies", serial, false, false},
    {"pinned", "pinned memory, blocking copies", serial, true, false},
    {"async", "asynchronous copies in one stream", one_stream, true, false},
    {"streams", "streams", many_streams, true, true},
    {"engines", "a stream for each engine, ordered by events", by_engine, true, true},
    {"pageable_async", "streams, but pageable memory", many_streams, false, true},
};

struct Options {
    std::vector<const Variant *> chosen;
    std::vector<int> chunks{4}, streams{2};
    flash::Problem problem{.B = 8, .Nq = 128, .Nkv = 128, .d_head = 64};
    int stage = 3, repeat = 5;
    std::string json;
    bool bandwidth = false;
};

// Wrong usage prints what is wrong and exits with status 2; --help prints the options and exits with 0.
Options parse_options(int argc, char **argv);

}  // namespace streams
