// Emscripten declares this function and does not have it: a WebAssembly program has no shared libraries to list.
#include <link.h>

extern "C" int dl_iterate_phdr(int (*)(dl_phdr_info *, size_t, void *), void *) {
    return 0;
}
