// Writes JSON: the simulator's reports and the results of the runners.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace json {

// Bytes of the UTF-8 sequence at text[i], 0 where there is none.
inline unsigned utf8_length(const std::string &text, size_t i) {
    const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned first = byte(i);
    if (first < 0x80) return 1;
    const unsigned length = first >= 0xc2 && first < 0xe0   ? 2
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
    unsigned code = length == 2 ? first & 0x1f : length == 3 ? first & 0x0f : first & 0x07;
    for (unsigned k = 1; k < length; ++k) {
        if ((byte(i + k) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i + k) & 0x3f);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    return overlong || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ? 0 : length;
}

// `text` with quotes, escaped; bytes that are no UTF-8 become U+FFFD.
inline std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        const unsigned length = utf8_length(text, i);
        if (length == 0) {
            result += "\\ufffd";
            ++i;
        } else if (length > 1) {
            result.append(text, i, length);
            i += length;
        } else {
            if (c == '"' || c == '\\') {
                result += '\\';
                result += c;
            } else if (c == '\n') {
                result += "\\n";
            } else if (c == '\t') {
                result += "\\t";
            } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                char escape[8];
                std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
                result += escape;
            } else {
                result += c;
            }
            ++i;
        }
    }
    return result + '"';
}

// Objects and arrays, piece by piece: puts the commas.
class Writer {
  public:
    Writer &key(const char *name) {
        comma();
        text_ += quoted(name) + ":";
        first_ = true;
        return *this;
    }
    Writer &open(char bracket) {
        comma();
        text_ += bracket;
        first_ = true;
        return *this;
    }
    Writer &close(char bracket) {
        text_ += bracket;
        first_ = false;
        return *this;
    }
    Writer &raw(const std::string &value) {
        comma();
        text_ += value;
        return *this;
    }
    Writer &null() { return raw("null"); }
    Writer &number(uint64_t value) { return raw(std::to_string(value)); }
    Writer &integer(int64_t value) { return raw(std::to_string(value)); }
    // Six significant digits. JSON has no NaN and no infinity: null stands for them.
    Writer &real(double value) {
        char text[32];
        std::snprintf(text, sizeof text, "%.6g", value);
        return std::isfinite(value) ? raw(text) : null();
    }
    Writer &boolean(bool value) { return raw(value ? "true" : "false"); }
    Writer &string(const std::string &value) { return raw(quoted(value)); }
    template <class Integer>
    Writer &triple(const Integer (&values)[3]) {
        open('[');
        for (const Integer value : values) integer(value);
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

}  // namespace json
