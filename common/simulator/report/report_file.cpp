#include "report/report_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace warpsim {

ReportFile::ReportFile(const char *variable, std::string path, std::string (*json)(const LaunchReport &),
                       bool with_host)
    : host(with_host && !path.empty()),
      variable_(variable),
      path_(std::move(path)),
      json_(json),
      with_host_(with_host),
      process_(getpid()) {
    for (size_t at; (at = path_.find("%p")) != std::string::npos;) path_.replace(at, 2, std::to_string(process_));
}

void ReportFile::add(const LaunchReport &report) {
    if (!wanted()) return;
    if (!launches_.empty()) launches_ += ",\n";
    launches_ += json_(report);
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
    return "{\"version\":1,\"launches\":[" + launches_ + (with_host_ ? "],\n" + host.json_members() + "}\n" : "]}\n");
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
        std::fprintf(stderr, "warpsim: cannot write %s=%s: %s\n", variable_, path_.c_str(), std::strerror(errno));
        std::remove(partial.c_str());
        path_.clear();
    }
}

}  // namespace warpsim
