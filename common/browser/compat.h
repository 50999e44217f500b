// What the simulator takes from newer or other compilers than the Emscripten 3.1.6 of Debian 12 (clang 14 with its
// library): included before every source of the WebAssembly build, and of no other. Newer ones bring most of it.
#pragma once

#include <atomic>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <version>

namespace std {

#ifndef __cpp_lib_bit_cast
template <class To, class From>
constexpr To bit_cast(const From &from) noexcept {
    return __builtin_bit_cast(To, from);
}
#endif

// Its strings and vectors have < and ==; what compares them by default asks for these.
#ifndef __cpp_lib_three_way_comparison
inline strong_ordering operator<=>(const string &a, const string &b) noexcept {
    return a.compare(b) <=> 0;
}

template <class T>
constexpr auto operator<=>(const vector<T> &a, const vector<T> &b)
    -> decltype(declval<const T &>() <=> declval<const T &>()) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
        if (const auto order = a[i] <=> b[i]; order != 0) return order;
    }
    return a.size() <=> b.size();
}
#endif

// One thread runs everything in a browser: there is nobody to be atomic against.
#if !defined(__cpp_lib_atomic_ref) && !defined(__EMSCRIPTEN_PTHREADS__)
template <class T>
class atomic_ref {
    static_assert(is_trivially_copyable_v<T>);

  public:
    explicit atomic_ref(T &object) : object_(&object) {}
    T load(memory_order = memory_order_seq_cst) const noexcept { return *object_; }
    void store(T value, memory_order = memory_order_seq_cst) const noexcept { *object_ = value; }
    bool compare_exchange_weak(T &expected, T desired) const noexcept {
        if (__builtin_memcmp(object_, &expected, sizeof(T)) != 0) {
            expected = *object_;
            return false;
        }
        *object_ = desired;
        return true;
    }

  private:
    T *object_;
};
#endif

#ifndef __cpp_lib_to_chars
// Of the decimal digits, point and exponent at `first`, which is all that the simulator's lexer asks for.
inline from_chars_result from_chars(const char *first, const char *last, double &value) {
    const char *end = first;
    while (end != last && ((*end >= '0' && *end <= '9') || *end == '.')) ++end;
    if (end != last && (*end | 0x20) == 'e') {
        const char *digits = end + 1;
        if (digits != last && (*digits == '+' || *digits == '-')) ++digits;
        if (digits != last && *digits >= '0' && *digits <= '9') {
            while (digits != last && *digits >= '0' && *digits <= '9') ++digits;
            end = digits;
        }
    }
    const string text(first, end);
    char *stop = nullptr;
    const double found = strtod(text.c_str(), &stop);
    if (stop == text.c_str()) return {first, errc::invalid_argument};
    const char *const rest = first + (stop - text.c_str());
    if (found == __builtin_huge_val() || (found == 0 && text.find_first_of("123456789") < text.find_first_of("eE")))
        return {rest, errc::result_out_of_range};
    value = found;
    return {rest, errc{}};
}
#endif

}  // namespace std

// GCC's: element i of the result is a[mask[i]], or b's for numbers from the size of a on; with one vector, the mask's
// numbers count modulo its size.
template <class Vector, class Mask>
[[gnu::always_inline]] inline Vector __builtin_shuffle(Vector a, Vector b, Mask mask) {
    constexpr unsigned kElements = sizeof(Vector) / sizeof(a[0]);
    Vector result;
#pragma clang loop unroll(full)
    for (unsigned i = 0; i < kElements; ++i) {
        const auto from = static_cast<unsigned>(mask[i]) % (2 * kElements);
        result[i] = from < kElements ? a[from] : b[from - kElements];
    }
    return result;
}
template <class Vector, class Mask>
[[gnu::always_inline]] inline Vector __builtin_shuffle(Vector a, Mask mask) {
    constexpr unsigned kElements = sizeof(Vector) / sizeof(a[0]);
    Vector result;
#pragma clang loop unroll(full)
    for (unsigned i = 0; i < kElements; ++i) result[i] = a[static_cast<unsigned>(mask[i]) % kElements];
    return result;
}
