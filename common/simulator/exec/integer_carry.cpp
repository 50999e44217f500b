// Extended-precision arithmetic: add.cc addc sub.cc subc mad.cc madc, through Warp::carry (one bit for each lane).
#include <limits>
#include <type_traits>

#include "exec/alu.h"

namespace warpsim {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide128 = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

struct Product {
    template <bool High, class T>
    static Unsigned<T> of(T a, T b) {
        const Wide128<T> product = Wide128<T>(a) * Wide128<T>(b);
        return Unsigned<T>(High ? product >> std::numeric_limits<Unsigned<T>>::digits : product);
    }
};

enum class Kind { add, sub, mad_lo, mad_hi };

// Takes the carry (borrow) in where In, leaves one where Out. A borrow is a set bit, as in the manual.
template <Kind K, class T, bool In, bool Out>
void extended(Warp &w, const Op &op) {
    using U = Unsigned<T>;
    const T *a = w.lanes<T>(op.a), *b = w.lanes<T>(op.b);
    const T *c = K == Kind::mad_lo || K == Kind::mad_hi ? w.lanes<T>(op.c) : nullptr;
    U *dst = w.lanes<U>(op.dst);
    const uint32_t carry = In ? w.carry : 0;
    uint32_t out = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        const U in = carry >> i & 1;
        U x, y, sum;
        bool overflow;
        if constexpr (K == Kind::sub) {
            overflow = __builtin_sub_overflow(U(a[i]), U(b[i]), &x);
            overflow |= __builtin_sub_overflow(x, in, &sum);
        } else {
            if constexpr (K == Kind::add)
                x = U(a[i]), y = U(b[i]);
            else
                x = Product::of<K == Kind::mad_hi>(a[i], b[i]), y = U(c[i]);
            overflow = __builtin_add_overflow(x, y, &sum);
            overflow |= __builtin_add_overflow(sum, in, &sum);
        }
        out |= uint32_t(overflow) << i;
        if (w.exec >> i & 1) dst[i] = sum;
    }
    if (Out) w.carry = (w.carry & ~w.exec) | (out & w.exec);
}

template <Kind K, class T>
void add_kind(AluForms &forms, const std::string &first, const std::string &next) {
    const std::string type = type_suffix<T>();
    const ptx::Type t = kTypeOf<T>;
    const ptx::Type third = K == Kind::add || K == Kind::sub ? ptx::Type::none : t;
    forms[first + ".cc" + type] = {&extended<K, T, false, true>, OpClass::integer, t, {t, t, third}};
    forms[next + type] = {&extended<K, T, true, false>, OpClass::integer, t, {t, t, third}};
    forms[next + ".cc" + type] = {&extended<K, T, true, true>, OpClass::integer, t, {t, t, third}};
}
template <class T>
void add_type(AluForms &forms) {
    add_kind<Kind::add, T>(forms, "add", "addc");
    add_kind<Kind::sub, T>(forms, "sub", "subc");
    add_kind<Kind::mad_lo, T>(forms, "mad.lo", "madc.lo");
    add_kind<Kind::mad_hi, T>(forms, "mad.hi", "madc.hi");
}

}  // namespace

void add_carry_forms(AluForms &forms) {
    add_type<uint32_t>(forms);
    add_type<int32_t>(forms);
    add_type<uint64_t>(forms);
    add_type<int64_t>(forms);
}

}  // namespace warpsim
