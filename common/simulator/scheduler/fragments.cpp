// Which lanes of a warp run next. The lowest place in the program goes first: since blocks are laid out in a weak
// topological order, lanes that are behind catch up with those that wait where paths meet.
#include <algorithm>

#include "machine/context.h"

namespace warpsim {

void AlignedBytes::release() {
    if (data_) ::operator delete(data_, std::align_val_t(64));
}

void AlignedBytes::reserve(size_t bytes) {
    if (bytes <= bytes_) return;
    release();
    data_ = nullptr;
    data_ = static_cast<std::byte *>(::operator new(bytes, std::align_val_t(64)));
    std::memset(data_, 0, bytes);
    bytes_ = bytes;
}

namespace {

// Compares places in the program as stacks of calls, outermost first.
bool before(const Fragment &a, const Fragment &b) {
    if (a.frame == b.frame) return a.pc < b.pc;
    const Frame *fa = a.frame, *fb = b.frame;
    uint32_t pa = a.pc, pb = b.pc;
    bool inside_a = false, inside_b = false;  // of a call that returns to pa, pb
    while (fa != fb) {
        if (fa->depth >= fb->depth) {
            pa = fa->return_pc;
            fa = fa->parent;
            inside_a = true;
        } else {
            pb = fb->return_pc;
            fb = fb->parent;
            inside_b = true;
        }
    }
    if (pa != pb) return pa < pb;
    if (inside_a != inside_b) return inside_a;  // it has not returned yet
    return a.mask < b.mask;
}

}  // namespace

Fragment &add_fragment(WarpContext &w, uint32_t pc, uint32_t mask, Frame *frame) {
    Fragment &f = w.fragments[w.count++];
    f = Fragment{};
    f.pc = pc;
    f.mask = mask;
    f.frame = frame;
    return f;
}

void drop_empty_fragments(WarpContext &w) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w.count; ++i) {
        if (!w.fragments[i].mask) continue;
        if (kept != i) w.fragments[kept] = w.fragments[i];
        ++kept;
    }
    w.count = kept;
}

Fragment *pick_fragment(WarpContext &w) {
    Fragment *best = nullptr;
    for (uint32_t i = 0; i < w.count; ++i) {
        Fragment &f = w.fragments[i];
        if (f.wait == Wait::nothing && !f.yielded && (!best || before(f, *best))) best = &f;
    }
    if (!best || w.count == 1) return best;
    bool merged = false;
    for (uint32_t i = 0; i < w.count; ++i) {
        Fragment &f = w.fragments[i];
        if (&f == best || f.wait != Wait::nothing || f.pc != best->pc || f.frame != best->frame) continue;
        best->mask |= f.mask;
        f.mask = 0;
        merged = true;
    }
    if (!merged) return best;
    const uint32_t mask = best->mask;
    drop_empty_fragments(w);
    return std::find_if(w.fragments.begin(), w.fragments.begin() + w.count,
                        [&](const Fragment &f) { return f.mask == mask; });
}

uint32_t limit_of(const WarpContext &w, const Fragment &running) {
    uint32_t limit = 0xffffffffu;
    for (uint32_t i = 0; i < w.count; ++i) {
        const Fragment &f = w.fragments[i];
        if (&f == &running || f.wait != Wait::nothing) continue;
        if (f.frame != running.frame) return 0;
        limit = std::min(limit, f.pc);
    }
    return limit;
}

}  // namespace warpsim
