#include "device_runtime/device_runtime.h"

#include <cstdio>
#include <string_view>

#include "core/round_up.h"
#include "machine/context.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

constexpr size_t kMostFormat = 1 << 16;
constexpr size_t kMostString = 1 << 16;
constexpr size_t kMostOutput = 64 << 20;  // of one block: a hostile kernel must not fill the memory
constexpr int kMostWidth = 4096;

bool read_text(uint64_t address, const ReadMemory &read, size_t most, std::string &out) {
    for (char c; out.size() < most;) {
        if (!read(address + out.size(), &c, 1)) return false;
        if (!c) return true;
        out += c;
    }
    return true;
}

// Takes packed arguments one after the other.
class Arguments {
  public:
    Arguments(uint64_t address, const ReadMemory &read) : address_(address), read_(read) {}
    template <class T>
    T next() {
        T value{};
        address_ = round_up(address_, sizeof(T));
        good_ = read_(address_, &value, sizeof value) && good_;
        address_ += sizeof(T);
        ++count_;
        return value;
    }
    bool good() const { return good_; }
    int count() const { return count_; }

  private:
    uint64_t address_;
    const ReadMemory &read_;
    bool good_ = true;
    int count_ = 0;
};

template <class T>
void append_formatted(std::string &out, const std::string &spec, T value) {
    const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
    if (length <= 0) return;
    const size_t old = out.size();
    out.resize(old + size_t(length) + 1);
    std::snprintf(out.data() + old, size_t(length) + 1, spec.c_str(), value);
    out.resize(old + size_t(length));
}

// One conversion: format[at] is behind the '%'. Returns the position behind it.
size_t convert(const std::string &format, size_t at, Arguments &arguments, const ReadMemory &read, bool &good,
               std::string &out) {
    std::string spec = "%";
    const auto peek = [&] { return at < format.size() ? format[at] : '\0'; };
    const auto number = [&] {
        int value = 0;
        if (peek() == '*') {
            ++at;
            value = arguments.next<int32_t>();
        } else {
            while (peek() >= '0' && peek() <= '9') value = std::min(kMostWidth, value * 10 + (format[at++] - '0'));
        }
        return std::max(-kMostWidth, std::min(kMostWidth, value));
    };
    while (peek() && std::string_view("-+ #0").find(peek()) != std::string_view::npos) spec += format[at++];
    const int width = number();
    if (width) spec += std::to_string(width);
    if (peek() == '.') {
        ++at;
        const int precision = number();
        if (precision >= 0) spec += "." + std::to_string(precision);
    }
    bool wide = false;
    while (peek() && std::string_view("hljztL").find(peek()) != std::string_view::npos) {
        const char c = format[at++];
        if (c == 'h')
            spec += c;
        else
            wide = true;
    }
    const char conversion = peek();
    if (conversion) ++at;
    switch (conversion) {
        case 'd':
        case 'i':
            if (wide)
                append_formatted(out, spec + "lld", static_cast<long long>(arguments.next<int64_t>()));
            else
                append_formatted(out, spec + conversion, arguments.next<int32_t>());
            break;
        case 'u':
        case 'o':
        case 'x':
        case 'X':
            if (wide)
                append_formatted(out, spec + "ll" + conversion,
                                 static_cast<unsigned long long>(arguments.next<uint64_t>()));
            else
                append_formatted(out, spec + conversion, arguments.next<uint32_t>());
            break;
        case 'c':
            append_formatted(out, spec + 'c', int(arguments.next<int32_t>()));
            break;
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            append_formatted(out, spec + conversion, arguments.next<double>());
            break;
        case 'p':
            append_formatted(out, spec + 'p', reinterpret_cast<void *>(arguments.next<uint64_t>()));
            break;
        case 's': {
            std::string text;
            const uint64_t address = arguments.next<uint64_t>();
            if (address)
                good = read_text(address, read, kMostString, text) && good;
            else
                text = "(null)";
            append_formatted(out, spec + 's', text.c_str());
            break;
        }
        case '%':
            out += '%';
            break;
        default:  // no conversion of printf's: as it stands
            out += spec;
            if (conversion) out += conversion;
            break;
    }
    return at;
}

}  // namespace

bool read_generic(Warp &w, unsigned lane, uint64_t address, void *to, size_t bytes) {
    const uint64_t window = address & kWindowMask, offset = address & ~kWindowMask;
    if (window == kLocalWindow) {
        if (offset > w.local_bytes || bytes > w.local_bytes - offset) return false;
        std::memcpy(to, w.local + lane * w.local_bytes + offset, bytes);
        return true;
    }
    if (window == kSharedWindow) {
        if (offset > w.block->shared_bytes || bytes > w.block->shared_bytes - offset) return false;
        std::memcpy(to, w.block->shared + offset, bytes);
        return true;
    }
    show_stores(w);
    if (w.block->pending) w.block->pending->flush();
    const AllocationView *view = w.block->global->find(address);
    if (!view || !view->contains(address, bytes)) return false;
    std::memcpy(to, view->at(address), bytes);
    return true;
}

int format_device_text(uint64_t format_address, uint64_t values, const ReadMemory &read, std::string &out) {
    if (!format_address) return -1;
    std::string format;
    bool good = read_text(format_address, read, kMostFormat, format);
    Arguments arguments(values, read);
    for (size_t at = 0; at < format.size();) {
        const size_t percent = std::min(format.find('%', at), format.size());
        out.append(format, at, percent - at);
        at = percent < format.size() ? convert(format, percent + 1, arguments, read, good, out) : percent;
    }
    return good && arguments.good() ? arguments.count() : -2;
}

void print(WarpContext &w, const std::string &text) {
    std::string &output = w.owner->output;
    if (output.size() + text.size() <= kMostOutput) output += text;
}

}  // namespace warpsim
