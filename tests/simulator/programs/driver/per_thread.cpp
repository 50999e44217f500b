// Stream 0 of a program built with CUDA_API_PER_THREAD_DEFAULT_STREAM is a stream of the thread's own.
//
//     per_thread FOLDER
#include "driver.h"

struct Question {
    CUresult (*get_id)(CUstream, unsigned long long *);
    unsigned long long id;
};

int main(int, char **argv) {
    folder() = argv[1];
    new_context();
    check_add(function_of(load_ptx(), "add"));
    unsigned long long own = 0, legacy = 0, named = 0;
    OK(cuStreamGetId(nullptr, &own));
    OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &named));
    // What a host function calls by its legacy name has the legacy stream, also while a call per thread waits for it.
    void *function = nullptr;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress("cuStreamGetId", &function, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
    Question question{reinterpret_cast<decltype(Question::get_id)>(function), 0};
    const auto ask = [](void *p) {
        Question &asked = *static_cast<Question *>(p);
        asked.get_id(nullptr, &asked.id);
    };
    OK(cuLaunchHostFunc(nullptr, ask, &question));
    OK(cuStreamSynchronize(nullptr));
    CHECK(question.id == legacy);
    std::printf("%s\n", own == named && own != legacy ? "its own" : own == legacy ? "the legacy one" : "none");
    return 0;
}
