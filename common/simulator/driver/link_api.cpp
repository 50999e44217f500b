// The linker of PTX: cuLink*. What it gives is PTX text again, which cuModuleLoadData takes.
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "driver/libraries.h"
#include "fatbin/fatbin.h"
#include "ptx/parser.h"
#include "runtime/modules.h"

using namespace warpsim;
using namespace warpsim::driver;

// The handle's own type, as the header declares it.
struct CUlinkState_st {
    std::unique_ptr<JitOptions> options;
    std::vector<std::string> texts;
    std::string linked;
};

namespace {

struct Links {
    std::mutex mutex;
    std::map<CUlinkState, std::unique_ptr<CUlinkState_st>> all;
};

Links &links() {
    static Links *made = new Links;
    return *made;
}

CUlinkState_st &find(CUlinkState handle) {
    Links &l = links();
    const std::lock_guard guard(l.mutex);
    const auto found = l.all.find(handle);
    want(found != l.all.end(), CUDA_ERROR_INVALID_HANDLE);
    return *found->second;
}

void add_text(CUlinkState_st &link, std::string text, const char *name) {
    try {
        ptx::parse(text);
    } catch (const ptx::ParseError &error) {
        rt::say(std::string(name && *name ? name : "the PTX given to cuLinkAddData") + ": " + error.what());
        throw Refusal{CUDA_ERROR_INVALID_PTX};
    }
    link.texts.push_back(std::move(text));
}

void add_fat_binary(CUlinkState_st &link, const void *data) {
    want(fatbin::is_fat_binary(data), CUDA_ERROR_INVALID_IMAGE);
    for (const void *image : fatbin::images(data)) {
        const std::vector<fatbin::Entry> entries = fatbin::list(image);
        const fatbin::Entry *best = fatbin::choose(entries, rt::Runtime::get()->profile.compute, true);
        if (!best) {
            rt::say("cuLinkAddData: the fat binary has no PTX that the device can run");
            throw Refusal{CUDA_ERROR_NO_BINARY_FOR_GPU};
        }
        link.texts.push_back(fatbin::ptx_text(*best));
    }
}

void add_data(CUlinkState_st &link, CUjitInputType type, const void *data, size_t bytes, const char *name) {
    want(data && bytes);
    if (type == CU_JIT_INPUT_FATBINARY) return add_fat_binary(link, data);
    // The device runtime is the simulator's own.
    if (type == CU_JIT_INPUT_LIBRARY && name && std::string_view(name).ends_with("libcudadevrt.a")) return;
    std::string_view text(static_cast<const char *>(data), bytes);
    while (text.ends_with('\0')) text.remove_suffix(1);
    if (type == CU_JIT_INPUT_PTX || (type == CU_JIT_INPUT_CUBIN && text.find(".version") != text.npos))
        return add_text(link, std::string(text), name);
    rt::say("cuLinkAddData: of what can be linked, the simulator takes PTX and fat binaries with PTX");
    throw Refusal{type == CU_JIT_INPUT_CUBIN ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_NOT_SUPPORTED};
}

// What the linker is told goes to the buffers that cuLinkCreate was given.
template <class F>
CUresult with_link(CUlinkState state, F body, const char *function = __builtin_FUNCTION()) {
    return call(
        [&] {
            CUlinkState_st &link = find(state);
            link.options->run([&] { body(link); });
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

}  // namespace

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
    return call([&] {
        want(state);
        auto link = std::make_unique<CUlinkState_st>();
        link->options = std::make_unique<JitOptions>(count, options, values);
        Links &l = links();
        const std::lock_guard guard(l.mutex);
        *state = link.get();
        l.all[*state] = std::move(link);
        return CUDA_SUCCESS;
    });
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned,
                       CUjit_option *, void **) {
    return with_link(state, [&](CUlinkState_st &link) { add_data(link, type, data, bytes, name); });
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned, CUjit_option *, void **) {
    return with_link(state, [&](CUlinkState_st &link) {
        want(path);
        const std::string content = read_file(path);
        add_data(link, type, content.data(), content.size(), path);
    });
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *bytes) {
    return with_link(state, [&](CUlinkState_st &link) {
        want(code && !link.texts.empty());
        link.linked = link.texts.size() == 1 ? link.texts.front() : rt::link_ptx(link.texts);
        unload(load_code(link.linked.c_str(), false));  // what one module uses and none has is found now
        *code = link.linked.data();
        if (bytes) *bytes = link.linked.size() + 1;
    });
}

CUresult cuLinkDestroy(CUlinkState state) {
    return call([&] {
        find(state);
        Links &l = links();
        const std::lock_guard guard(l.mutex);
        l.all.erase(state);
        return CUDA_SUCCESS;
    });
}
