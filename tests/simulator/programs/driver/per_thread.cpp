// Stream 0 of a program built with CUDA_API_PER_THREAD_DEFAULT_STREAM is a stream of the thread's own.
//
//     per_thread FOLDER
#include "driver.h"

int main(int, char **argv) {
    folder() = argv[1];
    new_context();
    check_add(function_of(load_ptx(), "add"));
    unsigned long long own = 0, legacy = 0, named = 0;
    OK(cuStreamGetId(nullptr, &own));
    OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &named));
    std::printf("%s\n", own == named && own != legacy ? "its own" : own == legacy ? "the legacy one" : "none");
    return 0;
}
