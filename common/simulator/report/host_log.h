// What the host asked for and when it happened: the CUDA calls that queue work or wait, in the host's order, and the
// operations in the order in which they took effect.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace warpsim {

// What an operation of a stream is, for people and for the report. kind: a name of the report's, null: not reported.
struct OperationLabel {
    const char *kind = nullptr;
    std::string name = {};              // of a kernel
    uint64_t bytes = 0;                 // that a copy or fill moves
    const char *host_memory = nullptr;  // "pinned" or "pageable", where a copy has the host's memory on one side
};

class HostLog {
  public:
    static constexpr uint64_t kMost = 100'000;  // calls, and operations: those after it are only counted
    static constexpr int64_t kNoStream = -1;

    // What this thread's calls are noted as instead of their own names; null: as these. The driver's functions call the
    // runtime's, and the program knows the driver's.
    static thread_local const char *alias;

    explicit HostLog(bool wanted) : wanted_(wanted) {}

    // The host makes a call about this stream, or kNoStream: about the whole device.
    void call(const char *name, int64_t stream);
    // A call, of whatever kind, was refused, and why.
    void refused(const char *name, const std::string &why);
    // Work that this thread has asked for is not done, and why; the thread asks for the error of all such.
    void undone(std::thread::id, const std::string &why);
    void asked(std::thread::id);
    size_t unasked() const { return unasked_.size(); }
    // The number of the latest call, from 0.
    uint64_t current() const { return calls_ - 1; }
    // An operation that call `queued` put into `stream` has taken effect, during the latest call.
    void completed(const OperationLabel &, int64_t stream, uint64_t queued);

    // Members of the report's object: "host_calls", "operations", where there are such "refused_calls" and
    // "unasked_errors" and, where some are missing, "operations_dropped".
    std::string json_members() const;

  private:
    bool wanted_;
    uint64_t calls_ = 0, operations_ = 0, refused_ = 0;
    std::string calls_json_, operations_json_, refused_json_;
    std::vector<std::pair<std::thread::id, std::string>> unasked_;
};

}  // namespace warpsim
