// What programs built with --default-stream per-thread call: the same functions by names that end in _ptsz or _ptds,
// for which stream 0 is the calling thread's own. And functions that are others under another name: their parameters
// come from those, so that each is named once.
#pragma once

#include <tuple>
#include <utility>

#include "runtime/runtime.h"

namespace warpsim::rt {

// For as long as it lives, stream 0 is the calling thread's own stream (`on`) or the legacy default stream.
class PerThreadStream {
  public:
    explicit PerThreadStream(bool on = true) : before_(std::exchange(this_thread().per_thread_stream, on)) {}
    ~PerThreadStream() { this_thread().per_thread_stream = before_; }
    PerThreadStream(const PerThreadStream &) = delete;
    PerThreadStream &operator=(const PerThreadStream &) = delete;

  private:
    const bool before_;
};

template <class F>
struct Signature;
template <class Result, class... Parameters>
struct Signature<Result(Parameters...)> {
    template <int I>
    using At = std::tuple_element_t<I, std::tuple<Parameters...>>;
};

}  // namespace warpsim::rt

// Of a function of N parameters: FORWARD_N(function) are the parameters with types, PASS_N without.
#define FORWARD_P(f, i) warpsim::rt::Signature<decltype(f)>::At<i> p##i
#define FORWARD_1(f) FORWARD_P(f, 0)
#define FORWARD_2(f) FORWARD_1(f), FORWARD_P(f, 1)
#define FORWARD_3(f) FORWARD_2(f), FORWARD_P(f, 2)
#define FORWARD_4(f) FORWARD_3(f), FORWARD_P(f, 3)
#define FORWARD_5(f) FORWARD_4(f), FORWARD_P(f, 4)
#define FORWARD_6(f) FORWARD_5(f), FORWARD_P(f, 5)
#define FORWARD_7(f) FORWARD_6(f), FORWARD_P(f, 6)
#define FORWARD_8(f) FORWARD_7(f), FORWARD_P(f, 7)
#define FORWARD_9(f) FORWARD_8(f), FORWARD_P(f, 8)
#define FORWARD_10(f) FORWARD_9(f), FORWARD_P(f, 9)
#define FORWARD_11(f) FORWARD_10(f), FORWARD_P(f, 10)
#define PASS_1 p0
#define PASS_2 PASS_1, p1
#define PASS_3 PASS_2, p2
#define PASS_4 PASS_3, p3
#define PASS_5 PASS_4, p4
#define PASS_6 PASS_5, p5
#define PASS_7 PASS_6, p6
#define PASS_8 PASS_7, p7
#define PASS_9 PASS_8, p8
#define PASS_10 PASS_9, p9
#define PASS_11 PASS_10, p10
