#include "report/host_log.h"

#include "report/json.h"

namespace warpsim {

void HostLog::call(const char *name, int64_t stream) {
    if (!wanted_) return;
    const uint64_t number = calls_++;
    if (number >= kMost) return;
    calls_json_ += std::string(number ? ",\n" : "") + "{\"call\":" + std::to_string(number) + ",\"name\":\"" + name +
                   "\",\"stream\":" + (stream == kNoStream ? "null" : std::to_string(stream)) + "}";
}

void HostLog::completed(const OperationLabel &what, int64_t stream, uint64_t queued) {
    if (!wanted_ || !what.kind || operations_++ >= kMost) return;
    std::string &text = operations_json_;
    if (!text.empty()) text += ",\n";
    text += std::string("{\"kind\":\"") + what.kind + "\",\"stream\":" + std::to_string(stream);
    text += ",\"name\":" + (what.name.empty() ? "null" : json_string(what.name));
    text += ",\"bytes\":" + std::to_string(what.bytes);
    text += ",\"host_memory\":" + (what.host_memory ? json_string(what.host_memory) : "null");
    text += ",\"queued\":" + std::to_string(queued) + ",\"completed\":" + std::to_string(current()) + "}";
}

std::string HostLog::json_members() const {
    std::string text = "\"host_calls\":[" + calls_json_ + "],\n\"operations\":[" + operations_json_ + "]";
    if (calls_ > kMost) text += ",\"host_calls_dropped\":" + std::to_string(calls_ - kMost);
    if (operations_ > kMost) text += ",\"operations_dropped\":" + std::to_string(operations_ - kMost);
    return text;
}

}  // namespace warpsim
