#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <map>

#include "core/names.h"
#include "report/report.h"

namespace warpsim {
namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &text, const char *format, ...) {
    char line[600];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

std::string dimensions(const uint32_t (&values)[3]) {
    return "(" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " + std::to_string(values[2]) + ")";
}

std::string base_name(const std::string &path) {
    return path.substr(path.find_last_of('/') + 1);
}

// A source file's lines, read when the first of them is asked for; none where the file is gone.
class Sources {
  public:
    std::string line(const std::string &path, uint32_t number, size_t width) {
        auto [it, is_new] = files_.try_emplace(path);
        if (is_new) {
            std::ifstream file(path);
            for (std::string text; std::getline(file, text);) it->second.push_back(text);
        }
        if (number == 0 || number > it->second.size()) return "";
        const std::string &text = it->second[number - 1];
        const size_t begin = text.find_first_not_of(" \t");
        return begin == std::string::npos ? "" : text.substr(begin, width);
    }

  private:
    std::map<std::string, std::vector<std::string>> files_;
};

// What a line costs beyond the ideal, in passes through the memory pipe.
uint64_t excess(const LineCount &line) {
    const auto above = [](uint64_t count, uint64_t ideal) { return count > ideal ? count - ideal : 0; };
    return above(line.shared_wavefronts, line.shared_ideal) + above(line.global_sectors, line.global_ideal);
}

void append_counts(std::string &text, const LaunchReport &report) {
    append(text, "  %llu PTX warp instructions:", static_cast<unsigned long long>(report.instructions));
    std::vector<std::pair<uint64_t, const char *>> classes;
    for (size_t i = 0; i < report.by_class.size(); ++i) {
        if (report.by_class[i]) classes.emplace_back(report.by_class[i], class_name(static_cast<OpClass>(i)));
    }
    std::stable_sort(classes.begin(), classes.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    for (size_t i = 0; i < classes.size(); ++i) {
        append(text, "%s %s %llu", i ? "," : "", classes[i].second, static_cast<unsigned long long>(classes[i].first));
    }
    append(text, "\n  barriers %llu, divergent branches %llu\n", static_cast<unsigned long long>(report.barriers),
           static_cast<unsigned long long>(report.divergent_branches));
    for (const auto &[name, count] : report.bulk)
        append(text, "  bulk %-8s %12llu copies, bytes %llu\n", name.c_str(),
               static_cast<unsigned long long>(count.copies), static_cast<unsigned long long>(count.bytes));
    for (const auto &[name, count] : report.tensor_copies)
        append(text, "  tensor %-8s %10llu copies, bytes %llu, sectors %llu\n", name.c_str(),
               static_cast<unsigned long long>(count.copies), static_cast<unsigned long long>(count.bytes),
               static_cast<unsigned long long>(count.sectors));
    for (const auto &[name, count] : report.wgmma)
        append(text, "  wgmma %-30s %llu, reads of shared operands %llu wavefronts\n", name.c_str(),
               static_cast<unsigned long long>(count.count), static_cast<unsigned long long>(count.wavefronts));
    if (report.mbarrier_waits)
        append(text, "  waits for mbarriers %llu, %llu of them found the phase open\n",
               static_cast<unsigned long long>(report.mbarrier_waits),
               static_cast<unsigned long long>(report.mbarrier_waited));
    for (const auto &[name, count] : report.shared) {
        if (!count.wavefronts) continue;
        append(text, "  shared %-8s %12llu wavefronts", name.c_str(),
               static_cast<unsigned long long>(count.wavefronts));
        if (count.ideal) {
            append(text, ", ideal %llu, bank conflicts %llu", static_cast<unsigned long long>(*count.ideal),
                   static_cast<unsigned long long>(count.wavefronts - std::min(count.wavefronts, *count.ideal)));
        }
        text += '\n';
    }
    for (const auto &[name, count] : report.global) {
        if (!count.sectors) continue;
        append(text, "  global %-8s %12llu sectors, ideal %llu, bytes %llu\n", name.c_str(),
               static_cast<unsigned long long>(count.sectors), static_cast<unsigned long long>(count.ideal),
               static_cast<unsigned long long>(count.bytes));
    }
}

}  // namespace

std::string to_table(const LaunchReport &report, unsigned most_lines) {
    std::string text = "warpsim: " + report.kernel + " grid " + dimensions(report.grid) + " block " +
                       dimensions(report.block) + " shared " + std::to_string(report.shared_bytes) + " bytes\n";
    if (report.error.empty()) append_counts(text, report);  // nothing is counted where a launch fails
    if (!report.lines.empty() && most_lines) {
        std::vector<const LineCount *> lines;
        for (const LineCount &line : report.lines) lines.push_back(&line);
        std::stable_sort(lines.begin(), lines.end(), [](const LineCount *a, const LineCount *b) {
            return std::pair(excess(*a), a->instructions) > std::pair(excess(*b), b->instructions);
        });
        const size_t shown = std::min<size_t>(lines.size(), most_lines);
        append(text, "  %-22s %12s %12s %10s %12s %10s  %s\n", "line", "instructions", "wavefronts", "(ideal)",
               "sectors", "(ideal)", "source");
        Sources sources;
        for (size_t i = 0; i < shown; ++i) {
            const LineCount &line = *lines[i];
            const std::string place = base_name(line.file) + ":" + std::to_string(line.line);
            const std::string calls = line.inlined.empty() ? "" : "  (" + calls_text(line.inlined) + ")";
            append(text, "  %-22s %12llu %12llu %10llu %12llu %10llu  %s%s\n", place.c_str(),
                   static_cast<unsigned long long>(line.instructions),
                   static_cast<unsigned long long>(line.shared_wavefronts),
                   static_cast<unsigned long long>(line.shared_ideal),
                   static_cast<unsigned long long>(line.global_sectors),
                   static_cast<unsigned long long>(line.global_ideal), sources.line(line.file, line.line, 70).c_str(),
                   calls.c_str());
        }
        if (shown < lines.size()) append(text, "  ... and %zu more lines\n", lines.size() - shown);
    }
    if (!report.error.empty()) text += "  FAILED: " + report.error + "\n";
    return text;
}

std::string to_text(const HazardRecord &hazard) {
    std::string title;
    switch (hazard.kind) {
        case HazardKind::out_of_bounds:
            title = "access out of bounds";
            break;
        case HazardKind::misaligned:
            title = "misaligned address";
            break;
        case HazardKind::uninitialized_shared:
            title = "read of uninitialised shared memory";
            break;
        case HazardKind::uninitialized_variable:
            title = "use of an uninitialised variable";
            break;
        case HazardKind::shared_race:
            title = "shared-memory race";
            break;
        case HazardKind::global_race:
            title = "global-memory race";
            break;
        case HazardKind::launch_race:
            title = "race between launches";
            break;
        case HazardKind::noncoherent_read:
            title = "read through the non-coherent cache of what the launch has written";
            break;
        case HazardKind::async_pending:
            title = "use of bytes that an asynchronous copy is still moving";
            break;
        case HazardKind::divergent_barrier:
            title = "divergent barrier";
            break;
        case HazardKind::deadlock:
            title = "deadlock";
            break;
        case HazardKind::missing_lanes:
            title = "warp-synchronous instruction with missing lanes";
            break;
        case HazardKind::invalid_address:
            title = "invalid address";
            break;
        case HazardKind::trap:
            title = "trap";
            break;
        case HazardKind::assertion:
            title = "assertion failed";
            break;
        case HazardKind::budget:
            title = "budget exceeded";
            break;
        case HazardKind::illegal_instruction:
            title = "illegal instruction";
            break;
        case HazardKind::invalid_argument:
            title = "invalid argument of an instruction";
            break;
        case HazardKind::mbarrier:
            title = "misuse of an mbarrier";
            break;
        case HazardKind::proxy_fence:
            title = "missing fence for the asynchronous proxy";
            break;
        case HazardKind::wgmma:
            title = "misuse of wgmma";
            break;
        case HazardKind::cluster:
            title = "misuse of a cluster";
            break;
        case HazardKind::setmaxnreg:
            title = "setmaxnreg without effect";
            break;
        case HazardKind::count_:
            break;
    }
    std::string text = (hazard.note ? "warpsim: note: " : "warpsim: ") + title;
    if (!hazard.file.empty()) text += " at " + base_name(hazard.file) + ":" + std::to_string(hazard.line);
    text += "\n    " + hazard.message;
    if (hazard.line) {
        Sources sources;
        const std::string line = sources.line(hazard.file, hazard.line, 110);
        if (!line.empty()) text += "\n    " + std::to_string(hazard.line) + " | " + line;
    }
    if (hazard.count > 1) text += "\n    seen " + std::to_string(hazard.count) + " times";
    return text + "\n";
}

}  // namespace warpsim
