// What launchers use of the standard library, declared alone: host code is parsed, for it says which instances of a
// kernel there are, but nothing is generated for it.
#pragma once
#include <cstddef>
#include <utility>

namespace std {
template <typename T>
class initializer_list {
    const T *first_;
    size_t size_;

  public:
    constexpr const T *begin() const { return first_; }
    constexpr const T *end() const { return first_ + size_; }
    constexpr size_t size() const { return size_; }
};
template <typename T>
struct vector {
    vector();
    vector(initializer_list<T>);
    vector(const vector &);
    ~vector();
    T *begin();
    T *end();
    const T *begin() const;
    const T *end() const;
    size_t size() const;
    T &operator[](size_t);
    void push_back(const T &);
};
template <typename T>
struct span {
    span(const vector<remove_cv_t<T>> &);
    template <size_t count>
    span(T (&)[count]);
    T *begin() const;
    T *end() const;
    T &back() const;
};
struct string {
    string();
    string(const char *);
    string &append(const char *);
    const char *c_str() const;
    bool empty() const;
};
bool operator==(const char *, const string &);
bool operator==(const string &, const char *);
template <typename Key, typename T>
struct map {
    T &operator[](const Key &);
};
struct mutex {};
template <typename Mutex>
struct lock_guard {
    explicit lock_guard(Mutex &);
    ~lock_guard();
};
int strcmp(const char *, const char *);
int abs(int);
int snprintf(char *, size_t, const char *, ...);
int sscanf(const char *, const char *, ...);
template <typename T>
const T &min(const T &, const T &);
template <typename T>
const T &max(const T &, const T &);
template <typename T>
const T &clamp(const T &, const T &, const T &);
template <typename T, size_t count>
constexpr size_t size(const T (&)[count]) {
    return count;
}
}  // namespace std
