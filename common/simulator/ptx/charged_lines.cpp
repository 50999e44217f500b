#include "ptx/charged_lines.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace warpsim::ptx {
namespace {

// Code in these counts as its caller's. A kernel's author cannot change CUDA's headers; the others have one instruction
// to a function.
constexpr const char *kWrappers[] = {
    "ptx*.cuh",
    "ptx*.h",
    "wgmma*.cuh",
    "numbers.cuh",
    // The system's and the toolkit's folders: installed, in a conda environment, as Python packages.
    "/usr/include/*",
    "/usr/local/include/*",
    "*/targets/*/include/*",
    "/usr/local/cuda*/include/*",
    "*/nvidia/*/include/*",
    // CUDA's libraries of headers, wherever they lie.
    "*/cub/*",
    "*/thrust/*",
    "*/libcudacxx/*",
    "*/cooperative_groups/*",
    "*/cuda/std/*",
    "*/cuda/__*",
    "*/crt/*",
    "cooperative_groups.h",
    "cuda_fp*.h*",
    "cuda_bf16.h*",
    "cuda_awbarrier*.h",
    "cuda_pipeline*.h",
    "cuda_runtime*.h",
    "device_functions.h*",
    "device_atomic_functions.h*",
    "math_functions.h*",
    "mma.h*",
    "sm_??_*.h*",
};

bool matches(const std::string &pattern, const std::string &path, const std::string &name) {
    if (pattern.find('/') == std::string::npos) return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    return fnmatch(pattern.c_str(), path.c_str(), 0) == 0 || fnmatch(("*/" + pattern).c_str(), path.c_str(), 0) == 0;
}

class Charging {
  public:
    Charging(Module &module, std::string_view more) : module_(module) {
        for (const auto &[number, path] : module.files) wrapper_[number] = is_wrapper(path, more);
    }

    SourceLocation charged(SourceLocation at) {
        const auto [found, is_new] = charged_.try_emplace({at.file, at.line, at.calls});
        if (is_new) found->second = choose(at);
        return found->second;
    }

    std::vector<InlinedCall> take_calls() { return std::move(calls_); }

  private:
    bool wraps(const SourceLocation &at) const {
        const auto found = wrapper_.find(at.file);
        return found != wrapper_.end() && found->second;
    }

    // The way from the innermost place outwards: the code, then each call.
    struct Step {
        SourceLocation at;
        const std::string *function;  // in which the code before lies; of the first: null
    };

    SourceLocation choose(const SourceLocation &innermost) {
        std::vector<Step> way{{innermost, nullptr}};
        while (uint32_t call = way.back().at.calls) {
            const InlinedCall &next = module_.calls[call - 1];
            way.push_back({next.at, &next.function});
        }
        size_t first = 0;
        while (first < way.size() && wraps(way[first].at)) ++first;
        const bool library = first == way.size();
        if (library) first = 0;
        while (library && way[first].at.file != way.back().at.file) ++first;
        SourceLocation place = way[first].at;
        place.calls = library ? 0 : calls_behind(way, first);
        return place;
    }

    // The calls behind step `first` that stand in no wrapper, kept from the outermost one on.
    uint32_t calls_behind(const std::vector<Step> &way, size_t first) {
        std::vector<std::pair<const std::string *, SourceLocation>> kept;
        for (size_t k = first + 1, code = first; k < way.size(); ++k) {
            if (wraps(way[k].at)) continue;
            kept.push_back({way[code + 1].function, way[k].at});
            code = k;
        }
        uint32_t outer = 0;
        for (size_t k = kept.size(); k-- > 0;) {
            const auto &[function, at] = kept[k];
            const auto [found, is_new] = known_.try_emplace({*function, at.file, at.line, outer});
            if (is_new) {
                calls_.push_back({*function, {at.file, at.line, outer}});
                found->second = uint32_t(calls_.size());
            }
            outer = found->second;
        }
        return outer;
    }

    Module &module_;
    std::map<uint32_t, bool> wrapper_;  // by file
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, SourceLocation> charged_;
    std::map<std::tuple<std::string, uint32_t, uint32_t, uint32_t>, uint32_t> known_;
    std::vector<InlinedCall> calls_;
};

// The compiler gives what it has moved out of a loop, or made of several lines, line 0. Its neighbour is what follows
// without a jump between, else what comes before.
void find_neighbours(std::vector<Instruction> &body) {
    SourceLocation before, behind;
    for (Instruction &instruction : body) {
        if (instruction.source.line) before = instruction.source;
        instruction.nearest = before;
    }
    for (auto instruction = body.rbegin(); instruction != body.rend(); ++instruction) {
        const std::string &opcode = instruction->opcode;
        if (opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit") behind = {};
        if (instruction->source.line) behind = instruction->source;
        if (behind.line) instruction->nearest = behind;
    }
}

}  // namespace

bool is_wrapper(std::string_view path_text, std::string_view more) {
    const std::string path(path_text), name = path.substr(path.find_last_of('/') + 1);
    for (const char *pattern : kWrappers)
        if (matches(pattern, path, name)) return true;
    for (size_t begin = 0; begin < more.size();) {
        const size_t end = std::min(more.find(':', begin), more.size());
        if (end > begin && matches(std::string(more.substr(begin, end - begin)), path, name)) return true;
        begin = end + 1;
    }
    return false;
}

void charge_lines(Module &module, std::string_view more) {
    Charging charging(module, more);
    for (Function &function : module.functions) {
        for (Instruction &instruction : function.body) instruction.source = charging.charged(instruction.source);
        find_neighbours(function.body);
    }
    module.calls = charging.take_calls();
}

}  // namespace warpsim::ptx
