// Keeps the reports of a process's launches and writes them to WARPSIM_REPORT, or their traces to WARPSIM_TRACE.
#pragma once

#include <chrono>
#include <string>

#include "report/host_log.h"
#include "report/report.h"

namespace warpsim {

class ReportFile {
  public:
    // variable: that gave the path. An empty path: nothing is kept. "%p" in it becomes the process id.
    // json: what is written of a launch. with_host: what the host did, too.
    ReportFile(const char *variable, std::string path, std::string (*json)(const LaunchReport &), bool with_host);

    bool wanted() const { return !path_.empty(); }
    void add(const LaunchReport &);
    // What the file holds, or would by now.
    std::string text() const;
    // Something has waited for the device: writes the file, unless writing would then take most of the time.
    void synchronized();
    // Writes the file at the end. Does nothing in a process that was forked from the one that made this.
    void finish();

    // What the host did; written with the launches.
    HostLog host;

  private:
    void write();

    const char *variable_;
    std::string path_;
    std::string (*json_)(const LaunchReport &);
    bool with_host_;
    int process_ = 0;
    std::string launches_;  // JSON of each, separated by commas
    std::chrono::steady_clock::time_point next_{};
};

}  // namespace warpsim
