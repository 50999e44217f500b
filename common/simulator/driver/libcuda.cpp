// libcuda.so.1: the names of the driver's functions, which the dynamic linker looks up in libcudart.so.13 instead (the
// library is a filter, DT_FILTER). A linker of programs finds them here. Nothing calls these definitions unless the
// loader knows no filters, and then they answer as a stub library does.
namespace {

constexpr int kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY

}  // namespace

#define SYMBOL(symbol, name, since, per_thread)                      \
    extern "C" __attribute__((visibility("default"))) int symbol() { \
        return kStubLibrary;                                         \
    }
#include "driver/symbols.h"
