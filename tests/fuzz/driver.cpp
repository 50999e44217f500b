// warpsim-fuzz TARGET --replay FILE...                       runs inputs, one after the other
// warpsim-fuzz TARGET --keep FOLDER FILE...                  copies those that reach what none before them reached
// warpsim-fuzz TARGET --seed N --count N --seconds N --cpu-seconds N --corpus FOLDER --findings FOLDER
//
// Fuzzing: a child makes inputs and runs them; the parent looks on. What both must know after the child's death lies in
// shared memory: the input that was being run, and the inputs worth damaging further.
#include <command_line.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "fuzz.h"

// What is freed is used again soon; no report of leaks at exit.
extern "C" const char *__asan_default_options() {
    return "max_allocation_size_mb=1024:quarantine_size_mb=16:detect_leaks=0:abort_on_error=1:"
           "handle_abort=1";
}
extern "C" const char *__ubsan_default_options() {
    return "print_stacktrace=1";
}

namespace fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kWallSeconds = 180;       // of one input: more is a hang
constexpr uint64_t kMostMemory = 1 << 30;  // bytes of the process that are resident
constexpr size_t kMostQueue = 1 << 14, kArenaBytes = 256 << 20;

struct Settings {
    const Target *target = nullptr;
    uint64_t seed = 1, count = ~0ull;
    double seconds = 60;
    double cpu_seconds = 20;  // of one input: more is a hang
    std::string corpus, findings;
};

struct Shared {
    std::atomic<uint64_t> next;  // execution that is being run, or comes next
    std::atomic<uint64_t> ran;
    std::atomic<bool> enough;    // the time is over; what is being run may still turn out to hang
    std::atomic<uint32_t> size;  // of the input in `input`
    char input[kMostInput];
    uint8_t seen[kCoverageBytes];  // by place: which classes of counts were seen
    std::atomic<uint32_t> queued;
    uint64_t used;  // of the arena
    struct {
        uint64_t at;
        uint32_t size;
    } queue[kMostQueue];
    char arena[kArenaBytes];
};

volatile std::sig_atomic_t stopped = 0;

Bytes read_file(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    bytes.resize(std::min(bytes.size(), kMostInput));
    return bytes;
}

std::vector<fs::path> files_below(const fs::path &folder) {
    std::vector<fs::path> files;
    for (const auto &entry : fs::directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

// Runs the input; true if it reached something new.
bool run_and_look(const Target &target, const Bytes &input, uint8_t *seen) {
    clear_coverage();
    target.run(input);
    const uint8_t *counts = coverage();
    bool is_new = false;
    for (size_t i = 0; i < kCoverageBytes; ++i) {
        if (!counts[i]) continue;
        const auto bit = static_cast<uint8_t>(1u << std::min(std::bit_width(counts[i]) - 1, 7));
        is_new = is_new || !(seen[i] & bit);
        seen[i] |= bit;
    }
    return is_new;
}

void enqueue(Shared &shared, const Bytes &input) {
    const uint32_t place = shared.queued;
    if (place == kMostQueue || input.size() > kArenaBytes - shared.used) return;
    std::memcpy(shared.arena + shared.used, input.data(), input.size());
    shared.queue[place] = {shared.used, static_cast<uint32_t>(input.size())};
    shared.used += input.size();
    shared.queued = place + 1;
}

Bytes queued(const Shared &shared, uint64_t index) {
    return {shared.arena + shared.queue[index].at, shared.queue[index].size};
}

// Input number `index` of this seed: the corpus first, then new ones.
Bytes input_of(const Settings &settings, const Shared &shared, const std::vector<Bytes> &corpus, uint64_t index) {
    if (index < corpus.size()) return corpus[index];
    Random random(settings.seed * 0x2545f4914f6cdd1dull + index);
    if (settings.target->make) return settings.target->make(random);
    // Any of the corpus, which a target that crashes on it may have kept out of the queue.
    const auto pick = [&] {
        const uint64_t n = random.below(corpus.size() + shared.queued);
        return n < corpus.size() ? corpus[n] : queued(shared, n - corpus.size());
    };
    const Bytes base = pick(), other = pick();
    return settings.target->mutate(base, other, random);
}

[[noreturn]] void child(const Settings &settings, Shared &shared, const std::vector<Bytes> &corpus, int log) {
    std::signal(SIGINT, SIG_IGN);
    dup2(log, 1);
    dup2(log, 2);
    for (uint64_t index = shared.next; index < settings.count && !shared.enough; shared.next = ++index) {
        const Bytes input = input_of(settings, shared, corpus, index);
        std::memcpy(shared.input, input.data(), input.size());
        shared.size = static_cast<uint32_t>(input.size());
        if (ftruncate(2, 0)) std::perror("ftruncate");
        if (run_and_look(*settings.target, input, shared.seen)) enqueue(shared, input);
        ++shared.ran;
    }
    _exit(0);
}

double cpu_seconds(pid_t process) {
    clockid_t clock;
    timespec time{};
    if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time)) return 0;
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

uint64_t resident_bytes(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/statm");
    uint64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// What names the place of a crash: the kind of error and the project's own functions on top of the stack.
std::string place_of(const std::string &log) {
    std::string place;
    unsigned frames = 0;
    for (size_t at = 0; at < log.size() && frames < 3;) {
        size_t end = std::min(log.find('\n', at), log.size());
        const std::string line = log.substr(at, end - at);
        at = end + 1;
        if (line.find("runtime error:") != std::string::npos) place += line.substr(0, line.find(": runtime")) + ' ';
        const size_t in = line.find(" in ");
        if (line.find("    #") != 0 || in == std::string::npos || line.find("warpsim") == std::string::npos) continue;
        place += line.substr(in + 4, line.find('(') - in - 4) + ' ';
        ++frames;
    }
    return place.empty() ? log.substr(0, log.find(',')) : place;
}

// Writes the input and what was said about it.
void keep_finding(const Settings &settings, const Shared &shared, const std::string &program, const std::string &how,
                  const std::string &log) {
    const std::string name = std::string(settings.target->name) + '-' + std::to_string(settings.seed) + '-' +
                             std::to_string(shared.next.load()) + '.' + settings.target->extension;
    const fs::path path = fs::path(settings.findings) / name;
    std::ofstream(path, std::ios::binary).write(shared.input, shared.size);
    std::ofstream(path.string() + ".txt") << how << '\n' << log;
    std::printf("FOUND: %s\n  replay: '%s' %s --replay '%s'\n  what was said: %s.txt\n", how.c_str(), program.c_str(),
                settings.target->name, path.c_str(), path.c_str());
    std::fflush(stdout);
}

std::string text_of(int log) {
    std::string text(1 << 15, '\0');
    const ssize_t size = pread(log, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
}

int fuzz(const Settings &settings, const std::string &program) {
    fs::create_directories(settings.findings);
    std::vector<Bytes> corpus;
    if (!settings.corpus.empty())
        for (const fs::path &file : files_below(settings.corpus)) corpus.push_back(read_file(file));
    if (!settings.target->make && corpus.empty()) throw std::runtime_error("this target needs a --corpus");
    void *memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory");
    auto &shared = *static_cast<Shared *>(memory);  // all zero, as it should be
    const int log = open((fs::path(settings.findings) / (std::string(settings.target->name) + ".log")).c_str(),
                         O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0) throw std::runtime_error("cannot write to " + settings.findings);
    std::signal(SIGINT, [](int) { stopped = 1; });
    std::signal(SIGTERM, [](int) { stopped = 1; });

    const Clock::time_point start = Clock::now();
    std::set<std::string> findings;
    uint64_t said = 0, failed = 0;
    const auto progress = [&] {
        const double seconds = seconds_since(start);
        std::printf("%s: %.0f s, %llu executions (%.0f/s), %u inputs reached something new, %zu findings\n",
                    settings.target->name, seconds, static_cast<unsigned long long>(shared.ran + failed),
                    static_cast<double>(shared.ran + failed) / std::max(seconds, 1e-3), shared.queued.load(),
                    findings.size());
        std::fflush(stdout);
    };
    bool over = false;
    while (!over) {
        const pid_t running = fork();
        if (running < 0) throw std::runtime_error("cannot fork");
        if (running == 0) child(settings, shared, corpus, log);
        uint64_t current = ~0ull;
        double cpu_before = 0;
        Clock::time_point since = start;
        int status = 0;
        std::string how;
        while (waitpid(running, &status, WNOHANG) == 0) {
            usleep(20'000);
            if (const uint64_t now = shared.next; now != current) {
                current = now, since = Clock::now(), cpu_before = cpu_seconds(running);
            }
            const bool hangs =
                cpu_seconds(running) - cpu_before > settings.cpu_seconds || seconds_since(since) > kWallSeconds;
            over = over || stopped;
            if (seconds_since(start) > settings.seconds) shared.enough = true;
            if (hangs && !over) how = "an input that takes too long";
            const bool hoards = resident_bytes(running) > kMostMemory;
            if (hoards && !over) how = "an input that takes more than " + std::to_string(kMostMemory >> 20) + " MiB";
            if (hangs || hoards || over) kill(running, SIGKILL);
            if (seconds_since(start) > 10 * static_cast<double>(said + 1)) {
                said = static_cast<uint64_t>(seconds_since(start) / 10);
                progress();
            }
        }
        if (over || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) break;
        const bool stopped_by_parent = !how.empty();
        if (!stopped_by_parent) {
            how = WIFSIGNALED(status)
                      ? std::string("an input that ends the process: ") + strsignal(WTERMSIG(status))
                      : "an input that ends the process with status " + std::to_string(WEXITSTATUS(status));
        }
        const std::string said_by_child = text_of(log);
        const bool is_new = findings.insert(stopped_by_parent ? how : how + place_of(said_by_child)).second;
        if (is_new) keep_finding(settings, shared, program, how, said_by_child);
        ++failed;
        ++shared.next;
    }
    progress();
    return findings.empty() ? 0 : 1;
}

int keep(const Target &target, const fs::path &folder, const std::vector<std::string> &files) {
    std::vector<uint8_t> seen(kCoverageBytes);
    fs::create_directories(folder);
    for (const std::string &file : files)
        if (run_and_look(target, read_file(file), seen.data()))
            fs::copy_file(file, folder / fs::path(file).filename(), fs::copy_options::overwrite_existing);
    return 0;
}

int replay(const Target &target, const std::vector<std::string> &files) {
    for (const std::string &file : files) {
        std::printf("%s\n", file.c_str());
        std::fflush(stdout);
        target.run(read_file(file));
    }
    std::printf("%zu inputs did no harm\n", files.size());
    return 0;
}

int main(int argc, char **argv) {
    Settings settings;
    for (const Target *target : {&kPtx, &kFatbin, &kKernels, &kMaps, &kPlanted})
        if (argc > 2 && !std::strcmp(argv[1], target->name)) settings.target = target;
    if (!settings.target) {
        std::fputs(
            "usage: warpsim-fuzz ptx|fatbin|kernels|maps --replay FILE... | --keep FOLDER FILE... |\n"
            "       --findings FOLDER [--corpus FOLDER] [--seed N] [--count N] [--seconds N] [--cpu-seconds N]\n",
            stderr);
        return 2;
    }
    const std::string first = argv[2];
    if (first == "--replay") return replay(*settings.target, {argv + 3, argv + argc});
    if (first == "--keep" && argc > 3) return keep(*settings.target, argv[3], {argv + 4, argv + argc});
    const command_line::CommandLine line(
        std::string("warpsim-fuzz ") + argv[1],
        {.usage = "--findings FOLDER [options], or --replay FILE..., or --keep FOLDER FILE...",
         .about =
             "Makes inputs and runs them, runs these inputs, or copies those that reach what none before reached.\n"},
        {command_line::text("findings", "FOLDER", settings.findings, "where what was found goes"),
         command_line::text("corpus", "FOLDER", settings.corpus, "inputs to begin with"),
         command_line::number<uint64_t>("seed", "N", settings.seed, "of the inputs", 0),
         command_line::number<uint64_t>("count", "N", settings.count, "inputs to run at most", 0),
         command_line::number("seconds", "N", settings.seconds, "to run at most", 0.0),
         command_line::number("cpu-seconds", "N", settings.cpu_seconds, "of one input: more is a hang", 0.0)});
    line.parse(argc - 1, argv + 1);
    if (settings.findings.empty()) line.stop("--findings FOLDER is missing");
    return fuzz(settings, argv[0]);
}

}  // namespace
}  // namespace fuzz

int main(int argc, char **argv) {
    try {
        return fuzz::main(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
