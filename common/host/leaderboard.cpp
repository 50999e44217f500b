// What a service in the way of KernelBot compiles with a submitted kernel, as `flashladder export-task` hands it out:
//     POPCORN_FD=3 ./eval test|benchmark|leaderboard CASES
// CASES has a line for each run, "batch: 1; heads: 2; rows: 512; dim: 128; seed: 1". What came of them goes to the file
// POPCORN_FD as lines "key: value", of which "check: pass" is the verdict. A submission is a whole kernel with
// the functions of attention.h.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_array.h"
#include "reference.h"
#include "timing.h"

using namespace flash;

namespace {

enum ExitStatus { passed = 0, no_output = 111, failed = 112, wrong_usage = 113 };
constexpr int kWarmUp = 3, kRuns = 20;

struct Case {
    std::string text;
    Problem problem;
    uint64_t seed = 1;
};

Case parse(const std::string &line, uint64_t secret) {
    Case result{.text = line};
    Problem &p = result.problem;
    int causal = 0, half = 0, seed = 1;
    p.Hkv = p.Nkv = 0;
    const std::map<std::string, int *> known{
        {"batch", &p.B}, {"heads", &p.Hq},   {"kvheads", &p.Hkv}, {"rows", &p.Nq}, {"keys", &p.Nkv},
        {"half", &half}, {"dim", &p.d_head}, {"causal", &causal}, {"seed", &seed},
    };
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ';');) {
        std::istringstream words(field);
        std::string name;
        int value;
        if (!std::getline(words >> std::ws, name, ':') || !(words >> value) || !known.contains(name)) {
            throw std::invalid_argument("not a case: '" + line + "'");
        }
        *known.at(name) = value;
    }
    if (!p.Hkv) p.Hkv = p.Hq;
    if (!p.Nkv) p.Nkv = p.Nq;
    p.causal = causal != 0;
    p.dtype = half ? FLASH_FP16 : FLASH_BF16;
    result.seed = uint64_t(seed) + (secret << 20);  // cases are public, the secret is not
    return result;
}

std::vector<Case> read_cases(const char *path, uint64_t secret) {
    std::ifstream file(path);
    if (!file) throw std::invalid_argument(std::string("cannot open ") + path);
    std::vector<Case> cases;
    for (std::string line; std::getline(file, line);)
        if (!line.empty()) cases.push_back(parse(line, secret));
    if (cases.empty()) throw std::invalid_argument(std::string(path) + " has no cases");
    return cases;
}

void refuse_the_simulator() {
    cudaDeviceProp properties{};
    flash::must(cudaGetDeviceProperties(&properties, 0), "device properties");
    if (std::strstr(properties.name, "warpsim"))
        throw std::runtime_error("times need a GPU: the simulator has no clock");
}

void must(FlashStatus status) {
    if (status != FLASH_OK) throw std::runtime_error(flash_last_error());
}

// Empty where the answer is right, else what is wrong with it; with `timing` the kernel's times besides.
std::string run(const Case &one, Timing *timing) {
    const Problem &problem = one.problem;
    const Inputs inputs = random_inputs(problem, one.seed);
    const DeviceArray Q(inputs.Q), K(inputs.K), V(inputs.V);
    const DeviceArray O(std::vector<uint16_t>(problem.q_elements(), poison));
    FlashParams params = problem.params(Q.data(), K.data(), V.data(), O.data());
    FlashDescription description;
    must(flash_describe(&params, &description));
    const DeviceArray workspace(description.workspace_bytes);
    params.workspace = workspace.data();
    params.workspace_bytes = description.workspace_bytes;
    must(flash_forward(&params, nullptr));
    flash::must(cudaDeviceSynchronize(), "the kernel failed");
    if (timing) refuse_the_simulator();
    if (timing) *timing = time_on_gpu([&] { must(flash_forward(&params, nullptr)); }, kWarmUp, kRuns);
    const Comparison comparison = compare(problem, O.to_host<uint16_t>(), reference(problem, inputs));
    return comparison.passed ? "" : comparison.message;
}

// In nanoseconds: mean, standard deviation and error, the best and the worst.
void log_times(std::FILE *out, const std::string &key, const std::vector<float> &times_ms) {
    double sum = 0, squares = 0;
    for (const double ms : times_ms) sum += ms * 1e6;
    const double runs = static_cast<double>(times_ms.size()), mean = sum / runs;
    for (const double ms : times_ms) squares += (ms * 1e6 - mean) * (ms * 1e6 - mean);
    const double deviation = std::sqrt(squares / (runs - 1));
    std::fprintf(out, "%s.runs: %zu\n%s.mean: %.1f\n%s.std: %.1f\n%s.err: %.1f\n", key.c_str(), times_ms.size(),
                 key.c_str(), mean, key.c_str(), deviation, key.c_str(), deviation / std::sqrt(runs));
    std::fprintf(out, "%s.best: %.1f\n%s.worst: %.1f\n", key.c_str(), times_ms.front() * 1e6, key.c_str(),
                 times_ms.back() * 1e6);
}

bool judge(std::FILE *out, const std::vector<Case> &cases, bool timed) {
    const std::string kind = timed ? "benchmark" : "test";
    bool all = true;
    std::fprintf(out, "%s-count: %zu\n", kind.c_str(), cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
        const std::string key = kind + "." + std::to_string(i);
        std::fprintf(out, "%s.spec: %s\n", key.c_str(), cases[i].text.c_str());
        Timing timing;
        std::string error;
        try {
            error = run(cases[i], timed ? &timing : nullptr);
        } catch (const std::runtime_error &failure) {
            error = failure.what();
        }
        all = all && error.empty();
        if (!error.empty()) {
            std::fprintf(out, "%s.status: fail\n%s.error: %s\n", key.c_str(), key.c_str(), error.c_str());
        } else if (timed) {
            log_times(out, key, timing.times_ms);
        } else {
            std::fprintf(out, "%s.status: pass\n", key.c_str());
        }
    }
    std::fprintf(out, "check: %s\n", all ? "pass" : "fail");
    return all;
}

}  // namespace

int main(int argc, char **argv) {
    const char *descriptor = std::getenv("POPCORN_FD"), *secret = std::getenv("POPCORN_SEED");
    std::FILE *out = descriptor ? fdopen(std::atoi(descriptor), "w") : nullptr;
    if (!out) return no_output;
    try {
        const std::string mode = argc == 3 ? argv[1] : "";
        if (mode != "test" && mode != "benchmark" && mode != "leaderboard") throw std::invalid_argument("what mode?");
        const std::vector<Case> cases = read_cases(argv[2], secret ? std::strtoull(secret, nullptr, 10) : 0);
        const bool right = judge(out, cases, mode != "test");
        std::fclose(out);
        return right ? passed : failed;
    } catch (const std::invalid_argument &error) {
        std::fprintf(stderr, "eval: %s\n", error.what());
        return wrong_usage;
    }
}
