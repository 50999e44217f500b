// std::format's {} alone, which not every compiler's library has yet.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace compiler {

inline std::string text_of(std::string_view text) {
    return std::string(text);
}
inline std::string text_of(char one) {
    return std::string(1, one);
}
template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, char>)
std::string text_of(T number) {
    return std::to_string(number);
}

// {{ and }} are braces.
template <class... Values>
std::string format(std::string_view form, const Values &...values) {
    const std::string texts[] = {text_of(values)..., ""};
    std::string found;
    size_t next = 0;
    for (size_t at = 0; at < form.size(); ++at) {
        const bool doubled = at + 1 < form.size() && form[at + 1] == form[at];
        if ((form[at] == '{' || form[at] == '}') && doubled) {
            found += form[at++];
        } else if (form[at] == '{') {
            found += texts[next++];
            ++at;
        } else {
            found += form[at];
        }
    }
    return found;
}

// Of as many digits, to the base 8 or 16.
inline std::string digits(unsigned long long number, int count, int base = 16) {
    std::string found(static_cast<size_t>(count), '0');
    for (int i = count; i-- > 0; number /= static_cast<unsigned>(base))
        found[static_cast<size_t>(i)] = "0123456789ABCDEF"[number % static_cast<unsigned>(base)];
    return found;
}

}  // namespace compiler
