// browser-run KERNEL.ptx REQUEST: the run of run.h as a program, for the tests and for a page that says strange things.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "run.h"

namespace {

std::string content(const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::cerr << "cannot read " << path << "\n";
        std::exit(2);
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::cerr << "usage: browser-run KERNEL.ptx REQUEST\nPrints the result as JSON (common/browser/run.h).\n";
        return 2;
    }
    const std::string ptx = content(argv[1]), request = content(argv[2]);
    std::puts(browser_run(ptx.c_str(), request.c_str()));
    return 0;
}
