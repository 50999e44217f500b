#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "report/report.h"

namespace warpsim {

// One launch as a JSON object.
std::string launch_json(const LaunchReport &);

// `text` with quotes, escaped; bytes that are no UTF-8 become U+FFFD.
std::string json_string(const std::string &text);

// Writes objects and arrays: puts the commas.
class JsonWriter {
  public:
    JsonWriter &key(const char *name) {
        comma();
        text_ += json_string(name) + ":";
        first_ = true;
        return *this;
    }
    JsonWriter &open(char bracket) {
        comma();
        text_ += bracket;
        first_ = true;
        return *this;
    }
    JsonWriter &close(char bracket) {
        text_ += bracket;
        first_ = false;
        return *this;
    }
    JsonWriter &raw(const std::string &value) {
        comma();
        text_ += value;
        return *this;
    }
    JsonWriter &null() { return raw("null"); }
    JsonWriter &number(uint64_t value) { return raw(std::to_string(value)); }
    JsonWriter &string(const std::string &value) { return raw(json_string(value)); }
    JsonWriter &triple(const uint32_t (&values)[3]) {
        open('[');
        for (const uint32_t value : values) number(value);
        return close(']');
    }
    std::string take() { return std::move(text_); }

  private:
    void comma() {
        if (!first_) text_ += ',';
        first_ = false;
    }
    std::string text_;
    bool first_ = true;
};

}  // namespace warpsim
