#include "exec/video.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/warp.h"

namespace warpsim {
namespace {

int compute(VideoOp what, int a, int b) {
    switch (what) {
        case VideoOp::add:
            return a + b;
        case VideoOp::sub:
            return a - b;
        case VideoOp::average:  // ties go away from zero
            return (a + b + (a + b >= 0)) >> 1;
        case VideoOp::absolute_difference:
            return std::abs(a - b);
        case VideoOp::min:
            return std::min(a, b);
        case VideoOp::max:
            return std::max(a, b);
        case VideoOp::eq:
            return a == b;
        case VideoOp::ne:
            return a != b;
        case VideoOp::lt:
            return a < b;
        case VideoOp::le:
            return a <= b;
        case VideoOp::gt:
            return a > b;
        case VideoOp::ge:
            return a >= b;
    }
    return 0;
}

template <unsigned Parts>
void exec_video(Warp &w, const Op &op) {
    constexpr unsigned kBits = 32 / Parts;
    constexpr int kRange = 1 << kBits;
    const VideoForm form = std::bit_cast<VideoForm>(op.imm);
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b), *c = w.lanes<uint32_t>(op.c);
    const auto part = [](uint64_t both, unsigned which, bool sign) {
        const int value = static_cast<int>(both >> which * kBits & (kRange - 1));
        return sign && value >= kRange / 2 ? value - kRange : value;
    };
    const bool sign = form.signs & 4;
    const int least = sign ? -kRange / 2 : 0, most = sign ? kRange / 2 - 1 : kRange - 1;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned lane) {
        const uint64_t both = static_cast<uint64_t>(b[lane]) << 32 | a[lane];
        uint32_t result = c[lane];
        for (unsigned i = 0; i < Parts; ++i) {
            if (!(form.mask >> i & 1)) continue;
            int value = compute(form.what, part(both, form.select[i] & 0xf, form.signs & 1),
                                part(both, form.select[i] >> 4, form.signs & 2));
            if (form.saturate) value = std::clamp(value, least, most);
            if (form.mask & kVideoSum) {
                result += static_cast<uint32_t>(value);
            } else {
                const uint32_t place = static_cast<uint32_t>(kRange - 1) << i * kBits;
                result = (result & ~place) | (static_cast<uint32_t>(value) << i * kBits & place);
            }
        }
        return result;
    });
}

}  // namespace

void exec_video2(Warp &w, const Op &op) {
    exec_video<2>(w, op);
}

void exec_video4(Warp &w, const Op &op) {
    exec_video<4>(w, op);
}

}  // namespace warpsim
