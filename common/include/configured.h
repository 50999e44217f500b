// For a stage whose kernel has several instances, told apart by a configuration: which of them runs a problem.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "launch.h"

namespace flash {

// One instance of the kernel, for one element type and head dim.
struct Instance {
    const char *configuration;  // its short form, as flashladder/tuning/configuration.py writes it
    FlashDtype dtype;
    int d_head;
    Kernel kernel;  // null: not in this build (FLASH_ONLY_...)
    int Br, Bc, threads;
    size_t shared_bytes;      // dynamic
    bool whole_tiles = true;  // takes lengths alone that its tiles divide
    int blocks = 1;           // of a persistent kernel: that a multiprocessor holds at a time
};

// Lengths of Q from `from` to `to` on a GPU: which configuration was the fastest there, or is thought to be.
enum Mask { any_mask, full, causal };
struct Choice {
    const char *gpu;
    int compute, multiprocessors;  // 90 for compute capability 9.0
    FlashDtype dtype;
    int d_head, from, to;
    const char *configuration;
    Mask mask = any_mask;    // the problems that it is for
    const char *basis = "";  // "": measured by `make tune`; else what it is predicted from
};

// What is asked of the device that the launch goes to; all 0 where there is none.
struct Device {
    std::string name;
    int compute = 0, multiprocessors = 0;
    size_t shared_bytes = 0;  // that a block may have
};

inline const Device &current_device() {
    static std::mutex mutex;
    static std::map<int, Device> known;  // asking takes longer than a small launch
    int number = -1;
    if (cudaGetDevice(&number) != cudaSuccess) number = -1;
    const std::lock_guard lock(mutex);
    Device &device = known[number];
    cudaDeviceProp properties{};
    if (device.compute == 0 && number >= 0 && cudaGetDeviceProperties(&properties, number) == cudaSuccess) {
        device = {properties.name, 10 * properties.major + properties.minor, properties.multiProcessorCount,
                  properties.sharedMemPerBlockOptin};
    }
    return device;
}

// The GPU that was tuned and is the nearest to this one: itself by its name; else, of those with the same major compute
// capability, the one with the most similar number of multiprocessors. Null where none is near.
inline const char *nearest_gpu(const Device &device, std::span<const Choice> choices) {
    const Choice *nearest = nullptr;
    const auto distance = [&](const Choice &one) { return std::abs(one.multiprocessors - device.multiprocessors); };
    for (const Choice &one : choices) {
        if (one.gpu == device.name) return one.gpu;
        if (one.compute / 10 == device.compute / 10 && (!nearest || distance(one) < distance(*nearest))) nearest = &one;
    }
    return nearest ? nearest->gpu : nullptr;
}

// The instance for a problem whose sizes are in order. By name where params.configuration gives one. Else what was
// chosen on the nearest GPU, or the first of the table, whichever first has tiles that divide the lengths and no more
// shared memory than the device has; if none has, the first of the type and head dim, for the limits to refuse.
// Null: no instance of that name.
inline const Instance *choose_instance(const FlashParams &params, std::span<const Instance> instances,
                                       std::span<const Choice> choices, const Device &device) {
    const auto of_type = [&](const auto &one) { return one.dtype == params.dtype && one.d_head == params.d_head; };
    const auto named = [&](const char *name) -> const Instance * {
        for (const Instance &one : instances)
            if (one.kernel && of_type(one) && std::strcmp(one.configuration, name) == 0) return &one;
        return nullptr;
    };
    const auto fits = [&](const Instance &one) {
        const bool divides = params.Nq % one.Br == 0 && params.Nkv % one.Bc == 0;
        return (divides || !one.whole_tiles) && (device.compute == 0 || one.shared_bytes <= device.shared_bytes);
    };
    if (params.configuration) return named(params.configuration);
    if (const char *gpu = nearest_gpu(device, choices)) {
        for (const Choice &one : choices) {
            if (std::strcmp(one.gpu, gpu) != 0 || !of_type(one) || params.Nq < one.from || params.Nq > one.to) continue;
            if (one.mask != any_mask && one.mask != (params.causal ? causal : full)) continue;
            const Instance *chosen = named(one.configuration);
            if (chosen && fits(*chosen)) return chosen;
        }
    }
    const Instance *first = nullptr;
    for (const Instance &one : instances) {
        if (!one.kernel || !of_type(one)) continue;
        if (fits(one)) return &one;
        if (!first) first = &one;
    }
    return first;
}

// Finds the instance and writes its tile into the limits, which every problem has passed first; or says why there is
// none.
inline FlashStatus choose_instance(const FlashParams *params, std::span<const Instance> instances,
                                   std::span<const Choice> choices, Limits &limits, const Instance *&chosen) {
    limits.configuration = "";  // such a stage takes them
    if (const FlashStatus status = check_sizes(params, limits); status != FLASH_OK) return status;
    chosen = choose_instance(*params, instances, choices, current_device());
    if (!chosen) {
        std::string built;
        for (const Instance &one : instances)
            if (one.kernel && one.dtype == params->dtype && one.d_head == params->d_head)
                built.append("\n    ").append(one.configuration);
        return fail(FLASH_UNSUPPORTED,
                    "stage '%s' has no instance '%s' for %s with d_head %d. Those built:%s\n"
                    "(flashladder.tuning builds any other)",
                    limits.title, params->configuration ? params->configuration : "",
                    params->dtype == FLASH_FP16 ? "fp16" : "bf16", params->d_head,
                    built.empty() ? " none" : built.c_str());
    }
    limits.configuration = chosen->configuration;
    limits.Br = chosen->Br, limits.Bc = chosen->Bc;
    if (chosen->whole_tiles) limits.multiple_Nq = chosen->Br, limits.multiple_Nkv = chosen->Bc;
    return check_sizes(params, limits);  // once more: now its tiles are known
}

// ---- a stage whose instances are persistent, take tensor maps and lengths of any kind ----

// blocks: that a multiprocessor holds at a time. shared_bytes: dynamic.
template <typename T>
Instance instance(const char *configuration, int d_head, Kernel kernel, int Br, int Bc, int threads, int blocks,
                  size_t shared_bytes) {
    constexpr FlashDtype dtype = std::is_same_v<T, __half> ? FLASH_FP16 : FLASH_BF16;
    return {configuration, dtype, d_head, kernel, Br, Bc, threads, shared_bytes, /*whole_tiles=*/false, blocks};
}

// The instances that are built, and which of them runs what.
struct Table {
    std::vector<Instance> instances;
    std::vector<Choice> choices;
};

// The launch for a problem, and the limits with the tile of the instance that was chosen.
inline FlashStatus plan(const FlashParams *params, const Table &table, Limits &limits, Launch &launch) {
    const Instance *one = nullptr;
    const FlashStatus status = choose_instance(params, table.instances, table.choices, limits, one);
    if (status != FLASH_OK) return status;
    launch = {.kernel = one->kernel,
              .grid = persistent(params->Hq * params->B * ((params->Nq + one->Br - 1) / one->Br), one->blocks),
              .threads = one->threads,
              .shared_bytes = one->shared_bytes,
              .Q_box_rows = one->Br,
              .KV_box_rows = one->Bc};
    return FLASH_OK;
}

// flash_forward() and flash_describe() of such a stage.
inline FlashStatus forward(const FlashParams *params, const Table &table, Limits limits, cudaStream_t stream) {
    Launch launch;
    FlashStatus status = plan(params, table, limits, launch);
    if (status == FLASH_OK) status = check(params, limits);
    return status == FLASH_OK ? flash::launch(launch, *params, stream) : status;
}
inline FlashStatus describe(const FlashParams *params, const Table &table, Limits limits,
                            FlashDescription *description) {
    Launch launch;
    const FlashStatus status = plan(params, table, limits, launch);
    return status == FLASH_OK ? describe(limits, launch, 0, description) : status;
}

}  // namespace flash
