// The driver API without the runtime, a case at a time:
//
//     driver_api CASE FOLDER
#include "cases.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    folder() = argv[2];
    const auto found = cases().find(argv[1]);
    if (found == cases().end()) return 2;
    found->second();
    std::printf("passed\n");
}
