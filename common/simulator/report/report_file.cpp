#include "report/report_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "report/json.h"

namespace warpsim {

ReportFile::ReportFile(std::string path) : host(!path.empty()), path_(std::move(path)), process_(getpid()) {
    for (size_t at; (at = path_.find("%p")) != std::string::npos;) path_.replace(at, 2, std::to_string(process_));
}

void ReportFile::add(const LaunchReport &report) {
    if (!wanted()) return;
    if (!launches_.empty()) launches_ += ",\n";
    launches_ += launch_json(report);
}

void ReportFile::synchronized() {
    if (!wanted() || std::chrono::steady_clock::now() < next_) return;
    const auto begin = std::chrono::steady_clock::now();
    write();
    const auto end = std::chrono::steady_clock::now();
    next_ = end + 10 * (end - begin);  // a long file is written less often
}

void ReportFile::finish() {
    if (wanted() && getpid() == process_) write();
}

std::string ReportFile::text() const {
    return "{\"version\":1,\"launches\":[" + launches_ + "],\n" + host.json_members() + "}\n";
}

// Readers see the old file or the new one, never a part.
void ReportFile::write() {
    const std::string partial = path_ + "." + std::to_string(process_) + ".part", content = text();
    std::FILE *file = std::fopen(partial.c_str(), "w");
    bool good = file != nullptr;
    if (file) {
        good = std::fwrite(content.data(), 1, content.size(), file) == content.size();
        good = std::fclose(file) == 0 && good;
        good = good && std::rename(partial.c_str(), path_.c_str()) == 0;
    }
    if (!good) {
        std::fprintf(stderr, "warpsim: cannot write WARPSIM_REPORT=%s: %s\n", path_.c_str(), std::strerror(errno));
        std::remove(partial.c_str());
        path_.clear();
    }
}

}  // namespace warpsim
