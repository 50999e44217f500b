// warpsim [options] [--] program [arguments]: runs a CUDA program with the simulator in place of the CUDA runtime.
#include <command_line.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fatbin/fatbin.h"
#include "machine/launch.h"
#include "runtime/profile.h"

namespace {

namespace fs = std::filesystem;

constexpr const char *kLibrary = "libcudart.so.13", *kDriver = "libcuda.so.1";
enum Status { kBadOption = 125, kCannotRun = 126, kNotFound = 127 };

[[noreturn]] void stop(Status status, const std::string &message) {
    std::fprintf(stderr, "warpsim: %s\n", message.c_str());
    std::exit(status);
}

// The library lies beside this program's folder in a build (bin/, simulator/) or an installation (bin/, lib/).
fs::path find_library() {
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    for (const fs::path &folder : {here.parent_path() / "simulator", here.parent_path() / "lib", here}) {
        if (fs::exists(folder / kLibrary)) return folder;
    }
    stop(kCannotRun, std::string(kLibrary) + " is not in ../simulator, ../lib or " + here.string() +
                         ": build it first (make build)");
}

std::string find_program(const std::string &name) {
    if (name.find('/') != std::string::npos) return fs::exists(name) ? name : "";
    const char *path = std::getenv("PATH");
    std::string rest = path ? path : "";
    for (size_t begin = 0; begin <= rest.size();) {
        const size_t end = std::min(rest.find(':', begin), rest.size());
        const fs::path candidate = fs::path(rest.substr(begin, end - begin)) / name;
        if (!access(candidate.c_str(), X_OK) && !fs::is_directory(candidate)) return candidate;
        begin = end + 1;
    }
    return "";
}

// What the launcher needs to know of an ELF file.
struct Program {
    std::vector<std::string> needed;  // names of shared libraries
    bool has_rpath = false;           // the old kind, which beats LD_LIBRARY_PATH
    bool has_device_code = false, has_ptx = false;
    bool has_kernels = false;               // in its PTX
    bool registers_code = false;            // kernels or variables of its own: nvcc also links empty device code
    std::vector<std::string> machine_code;  // "sm_80", "sm_90": each once
};

class Elf {
  public:
    explicit Elf(std::vector<char> file) : file_(std::move(file)) {}

    std::optional<Program> read() {
        const auto *header = at<Elf64_Ehdr>(0);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64)
            return {};
        Program program;
        const auto *names = section(header, header->e_shstrndx);
        for (unsigned i = 0; i < header->e_shnum; ++i) {
            const Elf64_Shdr *s = section(header, i);
            if (!s || !names) return {};
            const std::string name = text(names->sh_offset + s->sh_name);
            if (s->sh_type == SHT_DYNAMIC) read_dynamic(header, *s, program);
            if (s->sh_type == SHT_DYNSYM) read_symbols(header, *s, program);
            if (name == ".nv_fatbin" || name == "__nv_relfatbin") read_fat_binaries(*s, program);
        }
        return program;
    }

  private:
    template <class T>
    const T *at(uint64_t offset) const {
        return offset <= file_.size() && sizeof(T) <= file_.size() - offset
                   ? reinterpret_cast<const T *>(file_.data() + offset)
                   : nullptr;
    }
    const Elf64_Shdr *section(const Elf64_Ehdr *header, unsigned index) const {
        return at<Elf64_Shdr>(header->e_shoff + uint64_t{index} * header->e_shentsize);
    }
    std::string text(uint64_t offset) const {
        if (offset >= file_.size()) return "";
        return std::string(file_.data() + offset, strnlen(file_.data() + offset, file_.size() - offset));
    }

    void read_dynamic(const Elf64_Ehdr *header, const Elf64_Shdr &s, Program &program) const {
        const Elf64_Shdr *strings = section(header, s.sh_link);
        for (uint64_t offset = 0; strings && offset < s.sh_size; offset += sizeof(Elf64_Dyn)) {
            const auto *entry = at<Elf64_Dyn>(s.sh_offset + offset);
            if (!entry || entry->d_tag == DT_NULL) return;
            if (entry->d_tag == DT_NEEDED) program.needed.push_back(text(strings->sh_offset + entry->d_un.d_val));
            if (entry->d_tag == DT_RPATH) program.has_rpath = true;
        }
    }

    void read_symbols(const Elf64_Ehdr *header, const Elf64_Shdr &s, Program &program) const {
        const Elf64_Shdr *strings = section(header, s.sh_link);
        for (uint64_t offset = 0; strings && offset < s.sh_size; offset += sizeof(Elf64_Sym)) {
            const auto *symbol = at<Elf64_Sym>(s.sh_offset + offset);
            if (!symbol) return;
            const std::string name = text(strings->sh_offset + symbol->st_name);
            for (const char *call : {"__cudaRegisterFunction", "__cudaRegisterVar", "__cudaRegisterManagedVar"})
                program.registers_code = program.registers_code || name == call;
        }
    }

    void read_fat_binaries(const Elf64_Shdr &s, Program &program) const {
        constexpr uint32_t kMagic = 0xba55ed50;
        for (uint64_t offset = s.sh_offset, end = s.sh_offset + s.sh_size; offset + 16 <= end; offset += 8) {
            const uint32_t *magic = at<uint32_t>(offset);
            const uint64_t *bytes = at<uint64_t>(offset + 8);
            if (!magic || !bytes) return;
            if (*magic != kMagic || *bytes > end - offset - 16) continue;
            for (const warpsim::fatbin::Entry &entry : warpsim::fatbin::list(file_.data() + offset)) {
                program.has_device_code = true;
                program.has_ptx = program.has_ptx || entry.is_ptx;
                if (entry.is_ptx) {
                    const bool kernels = warpsim::fatbin::ptx_text(entry).find(".entry") != std::string::npos;
                    program.has_kernels = program.has_kernels || kernels;
                    continue;
                }
                std::string name = "sm_" + std::to_string(entry.compute);
                if (entry.suffix) name += entry.suffix;
                auto &known = program.machine_code;
                if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
            }
            offset += *bytes;
        }
    }

    std::vector<char> file_;
};

// Stops with the reason where the program's kernels could not run. Programs without device code of their own (a Python
// that loads CUDA code later, a shell script) pass. True where LD_LIBRARY_PATH would not be enough.
bool check_program(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) stop(kCannotRun, path + " cannot be read: " + std::strerror(errno));
    std::optional<Program> program;
    try {
        program = Elf({std::istreambuf_iterator<char>(stream), {}}).read();
    } catch (const warpsim::fatbin::Error &error) {
        stop(kCannotRun, path + ": " + error.what());
    }
    if (!program) return false;
    bool shared = false, driver = false;
    for (const std::string &name : program->needed) {
        shared = shared || name == kLibrary;
        driver = driver || name == kDriver;
        if (name.rfind("libcudart.so.", 0) == 0 && name != kLibrary) {
            stop(kCannotRun, path + " needs " + name + ", and the simulator stands in for " + kLibrary +
                                 ": rebuild the program with CUDA 13");
        }
    }
    if (!program->has_device_code) return program->has_rpath;
    // nvcc links its runtime also where nothing calls it: the program loads modules of its own through the driver.
    if (driver && !shared && program->has_ptx && !program->has_kernels) return program->has_rpath;
    if (!shared) {
        stop(kCannotRun, path +
                             " contains the CUDA runtime itself, so no other can take its place: link it with `nvcc "
                             "-cudart shared`");
    }
    if (!program->has_ptx && program->registers_code) {
        std::string devices;
        for (const std::string &name : program->machine_code) devices += (devices.empty() ? "" : ", ") + name;
        stop(kCannotRun,
             path + " has no PTX, only machine code for " + devices +
                 ": compile it with e.g. `nvcc -arch=sm_80`, or add -gencode arch=compute_80,code=compute_80");
    }
    return program->has_rpath;
}

void prepend(const char *variable, const std::string &value, const char *separator) {
    const char *old = std::getenv(variable);
    setenv(variable, (old && *old ? value + separator + old : value).c_str(), 1);
}

// An option that stands for a variable of the simulator's, whose rules hold for it, too.
command_line::Option variable(const char *name, const char *argument, const char *variable, const char *help,
                              const char *otherwise) {
    return {name, argument, help, otherwise, [=](const std::string &value) {
                if (value.empty()) throw std::invalid_argument("a value");
                // The program may change its folder before it writes the report.
                const bool is_file = name == std::string("report") || name == std::string("trace");
                setenv(variable, is_file ? fs::absolute(value).c_str() : value.c_str(), 1);
                try {
                    warpsim::find_profile(warpsim::Options::from_environment().device);
                } catch (const std::exception &error) {
                    const std::string text = error.what(), own = std::string(variable) + "=" + value + ": must be ";
                    if (text.rfind(own, 0) == 0) throw std::invalid_argument(text.substr(own.size()));
                    stop(kBadOption, text);
                }
            }};
}

}  // namespace

int main(int argc, char **argv) {
    const command_line::CommandLine line(
        "warpsim",
        {.usage = "[options] [--] program [arguments]",
         .about =
             "Runs a CUDA program on the CPU: its kernels' PTX is interpreted, its hazards reported by source line.\n"
             "The program must be built with `nvcc -cudart shared` and contain PTX (e.g. -arch=sm_80), best with "
             "-lineinfo.\n",
         .after = "The exit status is the program's; 125 for a mistake in the options, 126 and 127 for a program that "
                  "cannot run.\n",
         .wrong_usage = kBadOption,
         .stops_at_operand = true,
         .operands = true},
        {variable("report", "FILE", "WARPSIM_REPORT",
                  "write counters and hazards of every launch as JSON (%p in FILE: the process id)", ""),
         variable("trace", "FILE", "WARPSIM_TRACE",
                  "write what the warps of each launch's first block did, for a timeline", ""),
         {"table", "", "print the counters of every launch to stderr", "",
          [](const std::string &) { setenv("WARPSIM_TABLE", "1", 1); }},
         variable("hazards", "on|strict|warn|off", "WARPSIM_HAZARDS",
                  "stop at a hazard; stop at a note, too;\n"
                  "                       report hazards and go on; or leave memory and values unchecked",
                  "on"),
         variable("device", "NAME", "WARPSIM_DEVICE",
                  "sm_75, sm_80, sm_86, sm_89, sm_90 or t4, a100, rtx3090, rtx4090, h100, h200", "sm_90"),
         variable("schedule", "SEED", "WARPSIM_SCHEDULE",
                  "another interleaving of warps, blocks and streams; or last:K, stream K (0, 1, ...)\n"
                  "                       as late as possible and the others as early as possible",
                  "0: the default order"),
         variable("threads", "N", "WARPSIM_THREADS", "host threads to use, 0: one for each core", "0"),
         variable("timeout", "SECONDS", "WARPSIM_TIMEOUT_S", "for one launch, 0: no limit", "60")});
    const std::vector<std::string> operands = line.parse(argc, argv);
    const int index = argc - static_cast<int>(operands.size());
    if (operands.empty()) line.stop("no program given");
    try {
        warpsim::find_profile(warpsim::Options::from_environment().device);
    } catch (const std::exception &error) {
        stop(kBadOption, error.what());
    }
    const std::string program = find_program(argv[index]);
    if (program.empty()) stop(kNotFound, std::string(argv[index]) + ": no such program");
    if (fs::is_directory(program)) stop(kCannotRun, program + " is a folder");
    const bool needs_preload = check_program(program);
    const fs::path folder = find_library();
    prepend("LD_LIBRARY_PATH", folder, ":");
    if (needs_preload) {
        prepend("LD_PRELOAD", folder / kDriver, ":");
        prepend("LD_PRELOAD", folder / kLibrary, ":");
    }
    execv(program.c_str(), argv + index);
    stop(kCannotRun, program + " cannot be run: " + std::strerror(errno));
}
