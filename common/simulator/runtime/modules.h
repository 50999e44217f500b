// Code that programs register or load: fat binaries and PTX texts, their kernels and variables.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fatbin/fatbin.h"
#include "lower/module.h"
#include "runtime/cuda_api.h"
#include "runtime/profile.h"

namespace warpsim::rt {

struct Library;

struct Kernel {
    std::string name;          // mangled
    std::string display_name;  // demangled, without the parameter list where that is long
    Library *library = nullptr;
    int dynamic_shared_limit = -1;  // cudaFuncAttributeMaxDynamicSharedMemorySize; -1: not raised
    int carveout = -1;
    bool non_portable_cluster = false;
    int required_cluster[3] = {0, 0, 0};  // cudaFuncAttributeRequiredClusterWidth and so on; 0: not set
    Program *program = nullptr;           // lowered on first use
    Kernel *first = nullptr;              // that of device 0, whose handle programs have; null: it is this one
};

struct Variable {
    std::string name;
    size_t bytes = 0;
    Library *library = nullptr;
    void **managed = nullptr;  // where the host keeps a managed variable's address
};

struct Library {
    unsigned device = 0;                                  // that the code is loaded on
    std::map<unsigned, std::unique_ptr<Library>> others;  // the same code on other devices
    std::string origin;                                   // file that it came from, for messages
    const void *fat_binary = nullptr;                     // or its wrapper
    std::string text;                                     // or PTX
    std::unique_ptr<LoadedModule> module;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
    std::map<const void *, std::unique_ptr<Variable>> variables;  // by host address
    bool registered = false;                                      // by the program's own start-up code
};

class Modules {
  public:
    explicit Modules(const Profile &profile) : profile_(profile) {}

    Library *add_fat_binary(const void *wrapper);
    // PTX text or a fat binary in memory; the bytes are copied or must live as long as the library, as with CUDA.
    // caller: the function that was given it, for messages.
    Library *add_data(const void *code, const char *caller = "cudaLibraryLoadData");
    Library *add_text(std::string ptx, std::string origin);
    void remove(Library *);
    // Throws Failure{cudaErrorInvalidResourceHandle} for an unknown handle.
    Library *find_library(const void *handle);

    Kernel *add_kernel(Library *, const char *name, const void *host_stub);
    // The same code on the calling thread's device.
    Library &here(Library &);

    // By host stub or kernel handle, on the calling thread's device; throws Failure{cudaErrorInvalidDeviceFunction}.
    Kernel *find_kernel(const void *stub_or_handle);
    // By name within a library, lowered. Throws Failure{cudaErrorSymbolNotFound} and whatever program() throws.
    Kernel *kernel_of(Library *, const std::string &name);
    std::vector<std::string> kernel_names(Library *);

    void add_variable(Library *, const void *host, const char *name, size_t bytes, void **managed);
    // By the host's shadow of the variable; throws Failure{cudaErrorInvalidSymbol}.
    Variable *find_variable(const void *host);
    // Address on the calling thread's device, and exact size; throws Failure.
    std::pair<uint64_t, uint64_t> address_of(const Variable &);

    // Parses the library's PTX for the device, once. Throws Failure after it has said why.
    LoadedModule &loaded(Library &);
    // The lowered kernel. Throws Failure after it has said why.
    Program &program(Kernel &);
    // Gives managed variables their memory.
    void initialize_managed(Library &);
    // Forgets what was loaded into device memory; it is loaded again on demand.
    void unload_all();
    void unload(unsigned device);

  private:
    std::string choose_text(Library &);
    const Library *first_of(const Library &);

    const Profile &profile_;
    std::vector<std::unique_ptr<Library>> libraries_;
    std::map<const void *, Kernel *> kernels_;      // host stubs and handles
    std::map<const void *, Variable *> variables_;  // host shadows
};

// "void softmax<float>(float const*, int)" of a mangled name; the name itself where it is not mangled.
std::string demangle(const std::string &name);

// One PTX module out of several: the highest .version, the first module's target, file numbers made unique.
std::string link_ptx(const std::vector<std::string> &modules);

}  // namespace warpsim::rt
