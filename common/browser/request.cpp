#include "request.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace browser {
namespace {

class Line {
  public:
    explicit Line(const std::string &text) : text_(text), words_(text) {}

    // Empty at the end.
    std::string word() {
        std::string found;
        words_ >> found;
        return found;
    }

    std::string needed() {
        std::string found = word();
        if (found.empty()) fail("a word is missing");
        return found;
    }

    template <class T>
    T number(T least, T most) {
        const std::string found = needed();
        T value{};
        const char *const end = found.data() + found.size();
        const auto [rest, error] = std::from_chars(found.data(), end, value);
        if (error != std::errc() || rest != end || value < least || value > most)
            fail(found + " is no whole number from " + std::to_string(least) + " to " + std::to_string(most));
        return value;
    }

    // 0 at the end of the line.
    template <class T>
    T number_or_nothing(T least, T most) {
        words_ >> std::ws;
        return words_.eof() ? T{} : number(least, most);
    }

    float positive() {
        const std::string found = needed();
        double value{};
        const char *const end = found.data() + found.size();
        const auto [rest, error] = std::from_chars(found.data(), end, value);
        if (error != std::errc() || rest != end || !(value >= 1e-30 && value <= 1e30))
            fail(found + " is no number from 1e-30 to 1e30");
        return static_cast<float>(value);
    }

    void end() {
        if (const std::string more = word(); !more.empty()) fail(more + " is one word too many");
    }

    [[noreturn]] void fail(const std::string &why) const {
        throw std::invalid_argument("the request's line '" + text_ + "': " + why);
    }

  private:
    const std::string text_;
    std::istringstream words_;
};

// Beyond these nobody waits for a page: a length of 4096 is minutes already.
constexpr int kMostRows = 8192, kMostHeads = 64;

const std::string tensor_names = "QKVO";

void read_problem(Line &line, flash::Problem &problem) {
    problem.B = line.number(1, kMostHeads);
    problem.Hq = line.number(1, kMostHeads);
    problem.Hkv = line.number(1, kMostHeads);
    problem.Nq = line.number(1, kMostRows);
    problem.Nkv = line.number(1, kMostRows);
    problem.d_head = line.number(64, 128);
    if (problem.Hq % problem.Hkv || problem.d_head % 64) line.fail("no such heads");
    const std::string type = line.needed();
    if (type != "bf16" && type != "fp16" && type != "e4m3") line.fail("the type is bf16, fp16 or e4m3");
    problem.dtype = type == "bf16" ? FLASH_BF16 : type == "fp16" ? FLASH_FP16 : FLASH_E4M3;
    const std::string mask = line.word();
    if (!mask.empty() && mask != "causal") line.fail("the mask is `causal` or nothing");
    problem.causal = !mask.empty();
}

Launch read_launch(Line &line) {
    Launch launch;
    launch.symbol = line.needed();
    for (unsigned &size : launch.grid) size = line.number(1u, 65535u);
    launch.threads = line.number(1u, 1024u);
    launch.shared_bytes = line.number(0u, 1u << 20);
    const std::string how = line.word();
    if (!how.empty() && how != "early") line.fail("a launch is `early` or nothing");
    launch.early = !how.empty();
    return launch;
}

constexpr size_t kMostBytes = 1u << 30;

Memory read_memory(Line &line, bool is_output) {
    const std::string name = line.needed();
    return {name, line.number<size_t>(1, kMostBytes), is_output};
}

Place read_place(Line &line) {
    const std::string name = line.needed();
    return {name, line.number<uint64_t>(0, kMostBytes)};
}

Argument read_argument(Line &line) {
    const std::string digits = line.needed();
    Argument argument;
    for (size_t at = 0; at < digits.size(); at += 2) {
        unsigned value = 0;
        const char *const end = digits.data() + std::min(at + 2, digits.size());
        const auto [rest, error] = std::from_chars(digits.data() + at, end, value, 16);
        if (error != std::errc() || rest != end) line.fail("an argument is pairs of hexadecimal digits");
        argument.bytes.push_back(static_cast<unsigned char>(value));
    }
    return argument;
}

Map read_map(Line &line) {
    Map map;
    map.place = read_place(line);
    map.rank = line.number(1u, 5u);
    const auto read = [&](auto &numbers, unsigned count, auto most) {
        for (unsigned i = 0; i < count; ++i) numbers[i] = line.number(decltype(most){0}, most);
    };
    read(map.size, map.rank, uint64_t{1} << 32);
    read(map.stride, map.rank - 1, uint64_t{1} << 40);
    read(map.box, map.rank, 256u);
    read(map.step, map.rank, 8u);
    read(map.kinds, 5, 64);
    return map;
}

// What belongs to the argument before; bytes: that it takes there.
size_t read_offset(Line &line, Request &request, size_t bytes) {
    if (request.launches.empty() || request.launches.back().arguments.empty()) line.fail("there is no argument before");
    const size_t size = request.launches.back().arguments.back().bytes.size();
    if (size < bytes) line.fail("the argument is too small");
    return line.number<size_t>(0, size - bytes);
}

}  // namespace

Request parse_request(std::string_view text) {
    Request request;
    std::string seen;  // tensors
    std::istringstream lines{std::string(text)};
    for (std::string one; std::getline(lines, one);) {
        Line line(one);
        const std::string what = line.word();
        if (what.empty()) continue;
        if (what == "problem") {
            read_problem(line, request.problem);
        } else if (what == "scale") {
            request.problem.scale = line.positive();
        } else if (what == "seed") {
            request.seed = line.number<uint64_t>(0, UINT64_MAX);
        } else if (what == "log_sum_exp") {
            request.log_sum_exp = true;
        } else if (what == "workspace") {
            request.workspace_bytes = line.number<size_t>(1, kMostBytes);
            request.zeroed_bytes = line.number_or_nothing<size_t>(0, request.workspace_bytes);
        } else if (what == "boxes") {
            request.Q_box_rows = line.number(1, 256);
            request.KV_box_rows = line.number(1, 256);
        } else if (what == "launch") {
            request.launches.push_back(read_launch(line));
        } else if (what == "input" || what == "output") {
            request.memory.push_back(read_memory(line, what == "output"));
        } else if (what == "argument") {
            if (request.launches.empty()) line.fail("there is no launch before");
            request.launches.back().arguments.push_back(read_argument(line));
        } else if (what == "pointer") {
            const size_t offset = read_offset(line, request, 8);
            request.launches.back().arguments.back().pointers.emplace_back(offset, read_place(line));
        } else if (what == "map") {
            const size_t offset = read_offset(line, request, 128);
            request.launches.back().arguments.back().maps.emplace_back(offset, read_map(line));
        } else if (what == "tensor") {
            const std::string name = line.needed();
            const size_t at = tensor_names.find(name);
            if (name.size() != 1 || at == std::string::npos || seen.find(name) != std::string::npos)
                line.fail("a tensor is Q, K, V or O, once");
            for (int64_t *stride : {&request.tensors[at].batch, &request.tensors[at].head, &request.tensors[at].row})
                *stride = line.number<int64_t>(1, 1 << 28);
            seen += name;
        } else if (what.starts_with("WARPSIM_")) {
            request.settings.emplace_back(what, line.needed());
        } else {
            line.fail("nobody knows '" + what + "'");
        }
        line.end();
    }
    request.given = !seen.empty();
    if (request.given && seen.size() != tensor_names.size())
        throw std::invalid_argument("the request has lines `tensor` for " + seen + " and not for all of Q, K, V and O");
    if (request.launches.empty()) throw std::invalid_argument("the request has no line `launch`");
    return request;
}

}  // namespace browser
