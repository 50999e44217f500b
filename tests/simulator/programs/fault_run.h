// main() of the programs with faults.
//
//     faults NAME 0|1            runs NAME's kernel on zeros, as it is or mended, and prints the error's name
//     faults NAME 0|1 LAUNCHES   for a GPU, where a mistake may show in the numbers, or now and then, or never: one
//                                launch of the mended kernel, then so many of NAME's, on inputs that are not zero.
//                                Before each, a kernel leaves 0x42424242 in the shared memory of every multiprocessor.
//
// With LAUNCHES it prints "expected HASH" of what the mended kernel wrote, and for each launch "ERROR WRONG WORDS FIRST
// GOT WANTED": the error's name, how many of the words differ from what was expected, and the first that does. It
// ends at the first error.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr unsigned kLeft = 0x42424242;

// Words that are two bf16 each, whole numbers from -64 to 63, so that sums of their products are exact; as floats they
// are normal numbers.
inline void put_numbers(void *to, size_t bytes, bool numbers) {
    std::vector<uint32_t> words(bytes / 4);
    for (size_t i = 0; numbers && i < words.size(); ++i) {
        for (int half = 0; half < 2; ++half) {
            const float whole = float(int((2 * i + half) * 2654435761u >> 13 & 127) - 64);
            uint32_t bits;
            static_assert(sizeof bits == sizeof whole);
            __builtin_memcpy(&bits, &whole, 4);
            words[i] |= bits >> 16 << 16 * half;
        }
    }
    cudaMemcpy(to, words.data(), bytes, cudaMemcpyHostToDevice);
}

__global__ void leave_numbers_in_shared_memory(unsigned bytes) {
    extern __shared__ uint4 tile[];
    for (unsigned i = threadIdx.x; i < bytes / 16; i += blockDim.x)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"((unsigned)__cvta_generic_to_shared(tile + i)),
                     "r"(kLeft)
                     : "memory");
}

inline void leave_numbers() {
    int bytes = 0, multiprocessors = 0;
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    cudaFuncSetAttribute(leave_numbers_in_shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    leave_numbers_in_shared_memory<<<multiprocessors, 1024, bytes>>>(bytes);
}

// prepare(numbers) puts the inputs in place, zeros or not; launch(mended) launches the kernel. out: what it writes.
template <typename Prepare, typename Launch>
int run_fault(int argc, char **argv, const void *out, size_t out_bytes, Prepare prepare, Launch launch) {
    const bool mended = argv[2][0] == '1';
    if (argc == 3) {
        prepare(false);
        launch(mended);
        const cudaError_t error = cudaDeviceSynchronize();
        std::printf("%s\n", cudaGetErrorName(error));
        return error == cudaSuccess ? 0 : 3;
    }
    std::vector<uint32_t> expected(out_bytes / 4), found(expected);
    for (int i = 0; i <= std::atoi(argv[3]); ++i) {
        prepare(true);
        cudaMemset(const_cast<void *>(out), 0xcd, out_bytes);
        leave_numbers();
        cudaDeviceSynchronize();
        launch(i == 0 || mended);
        cudaError_t error = cudaGetLastError();
        if (error == cudaSuccess) error = cudaDeviceSynchronize();
        auto &words = i ? found : expected;
        if (error == cudaSuccess) error = cudaMemcpy(words.data(), out, out_bytes, cudaMemcpyDeviceToHost);
        if (i == 0 && error == cudaSuccess) {
            uint64_t hash = 0xcbf29ce484222325u;
            for (const uint32_t word : expected) hash = (hash ^ word) * 0x100000001b3u;
            std::printf("expected %016llx\n", (unsigned long long)hash);
        } else {
            size_t wrong = 0, first = 0;
            for (size_t word = words.size(); word-- > 0;)
                if (error == cudaSuccess && found[word] != expected[word]) ++wrong, first = word;
            std::printf("%s %zu %zu %zu %08x %08x\n", cudaGetErrorName(error), wrong, words.size(), first, found[first],
                        expected[first]);
        }
        std::fflush(stdout);
        if (error != cudaSuccess) return 3;
    }
    return 0;
}
