#include "report/host_log.h"

#include <json_writer.h>

namespace warpsim {
namespace {

void append(std::string &list, json::Writer &entry) {
    if (!list.empty()) list += ",\n";
    list += entry.take();
}

}  // namespace

thread_local const char *HostLog::alias = nullptr;

void HostLog::call(const char *name, int64_t stream) {
    if (!wanted_) return;
    const uint64_t number = calls_++;
    if (number >= kMost) return;
    json::Writer w;
    w.open('{').key("call").number(number).key("name").string(alias ? alias : name).key("stream");
    (stream == kNoStream ? w.null() : w.number(stream)).close('}');
    append(calls_json_, w);
}

void HostLog::refused(const char *name, const std::string &why) {
    if (!wanted_ || refused_++ >= kMost) return;
    json::Writer w;
    w.open('{').key("name").string(name).key("why").string(why).close('}');
    append(refused_json_, w);
}

void HostLog::undone(std::thread::id thread, const std::string &why) {
    const std::pair one(thread, why);
    if (unasked_.size() < kMost && (unasked_.empty() || unasked_.back() != one)) unasked_.push_back(one);
}

void HostLog::asked(std::thread::id thread) {
    std::erase_if(unasked_, [&](const auto &one) { return one.first == thread; });
}

void HostLog::completed(const OperationLabel &what, int64_t stream, uint64_t queued) {
    if (!wanted_ || !what.kind || operations_++ >= kMost) return;
    json::Writer w;
    w.open('{').key("kind").string(what.kind).key("stream").number(stream).key("name");
    (what.name.empty() ? w.null() : w.string(what.name)).key("bytes").number(what.bytes).key("host_memory");
    (what.host_memory ? w.string(what.host_memory) : w.null()).key("queued").number(queued);
    w.key("completed").number(current()).close('}');
    append(operations_json_, w);
}

std::string HostLog::json_members() const {
    std::string text = "\"host_calls\":[" + calls_json_ + "],\n\"operations\":[" + operations_json_ + "]";
    if (refused_) text += ",\n\"refused_calls\":[" + refused_json_ + "]";
    if (!unasked_.empty()) {
        json::Writer w;
        w.open('[');
        for (const auto &[thread, why] : unasked_) w.string(why);
        w.close(']');
        text += ",\n\"unasked_errors\":" + w.take();
    }
    if (calls_ > kMost) text += ",\"host_calls_dropped\":" + std::to_string(calls_ - kMost);
    if (operations_ > kMost) text += ",\"operations_dropped\":" + std::to_string(operations_ - kMost);
    return text;
}

}  // namespace warpsim
