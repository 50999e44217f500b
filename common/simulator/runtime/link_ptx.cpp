#include "runtime/link_ptx.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace warpsim::rt {
namespace {

constexpr unsigned kFilesPerModule = 1 << 16;

// The rest of a line behind `word`, or null where the line does not begin with it.
const char *after(std::string_view line, std::string_view word) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line.substr(begin, word.size()) != word) return nullptr;
    const size_t end = begin + word.size();
    return end < line.size() && (line[end] == ' ' || line[end] == '\t') ? line.data() + end : nullptr;
}

// `line` with the file number at `number`, and the one behind inlined_at, raised by `shift`.
std::string renumbered(std::string_view line, const char *number, unsigned shift) {
    constexpr std::string_view kInlined = "inlined_at ";
    std::string result(line.substr(0, number - line.data()));
    const auto append_number = [&](std::string_view text) {
        char *rest = nullptr;
        const unsigned long file = std::strtoul(text.data(), &rest, 10);  // the line's end ends it at the latest
        result += ' ' + std::to_string(file + shift);
        return text.substr(rest - text.data());
    };
    std::string_view rest = append_number(line.substr(number - line.data()));
    if (const size_t at = rest.find(kInlined); at != std::string_view::npos) {
        result.append(rest.substr(0, at + kInlined.size()));
        rest = append_number(rest.substr(at + kInlined.size()));
    }
    return result.append(rest) + '\n';
}

}  // namespace

std::string link_ptx(const std::vector<std::string> &modules) {
    unsigned version = 0;
    std::string target, body;
    for (size_t index = 0; index < modules.size(); ++index) {
        const std::string_view text = modules[index];
        const unsigned shift = static_cast<unsigned>(index) * kFilesPerModule;
        for (size_t begin = 0; begin < text.size();) {
            size_t end = text.find('\n', begin);
            if (end == std::string_view::npos) end = text.size();
            const std::string_view line = text.substr(begin, end - begin);
            begin = end + 1;
            unsigned major = 0, minor = 0;
            if (const char *rest = after(line, ".version")) {
                if (std::sscanf(rest, "%u.%u", &major, &minor) == 2) version = std::max(version, major * 10 + minor);
            } else if (after(line, ".target")) {
                if (target.empty()) target = line;
            } else if (after(line, ".address_size")) {
                continue;
            } else if (const char *number = after(line, ".file"); number || (number = after(line, ".loc"))) {
                body += renumbered(line, number, shift);
            } else {
                body.append(line);
                body += '\n';
            }
        }
    }
    return ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + "\n" + target +
           "\n.address_size 64\n" + body;
}

}  // namespace warpsim::rt
