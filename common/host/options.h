// The command line of a stage's runner.
#pragma once

#include "problem.h"

namespace flash {

struct Options {
    Problem problem;
    uint64_t seed = 1;
    int iterations = 20;
    std::string configuration;  // empty: the stage's own choice
    bool bench = false, once = false, describe = false, json = false;
};

// Wrong usage prints what is wrong and exits with status 2; --help prints the options and exits with 0.
Options parse_options(int argc, char **argv);

}  // namespace flash
