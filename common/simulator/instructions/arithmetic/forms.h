// Straight-line arithmetic: loops over 32 lanes around a functor, the tables that lowering looks instructions up in,
// and that lowering: look an instruction's text up, fetch its operands, emit one op.
#pragma once

#include <array>
#include <bit>
#include <cfenv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/types.h"
#include "core/warp.h"
#include "lower/lowering.h"

namespace warpsim {

// One instruction form, e.g. "mad.wide.u32": its handler and the types (widths) of its operands.
struct AluForm {
    Handler fn = nullptr;
    OpClass cls = OpClass::other;
    ptx::Type dst = ptx::Type::none;
    std::array<ptx::Type, 4> src = {};  // none behind the last one
};
// By text as in Instruction::text(); forms that differ in the number of sources only end in "/3" for the longer one.
using AluForms = std::unordered_map<std::string, AluForm>;

// Each adds its forms; called once per process.
void add_integer_forms(AluForms &);  // instructions/arithmetic/integer.cpp
void add_bit_forms(AluForms &);      // instructions/arithmetic/logic.cpp
void add_carry_forms(AluForms &);    // instructions/arithmetic/integer.cpp
void add_float_forms(AluForms &);    // instructions/arithmetic/float.cpp
void add_special_forms(AluForms &);  // instructions/arithmetic/float.cpp
void add_half_forms(AluForms &);     // instructions/arithmetic/half.cpp
void add_compare_forms(AluForms &);  // instructions/arithmetic/compare.cpp: setp and set without their Boolean operand
void add_select_forms(
    AluForms &);  // instructions/convert/move.cpp: selp, slct, prmt, mov of one register, predicate logic
// instructions/convert/convert.cpp: by the text, plus "/a4" or "/d4" where an 8-bit source or result sits in a 32-bit
// register (without: a 16-bit one).
void add_convert_forms(AluForms &);

// dst[i] = F{}(a[i], ...) in the executing lanes. A register may be both source and destination: lane i is read
// before it is written, and no other lane's result depends on it.
template <class F, class D, class A>
void map1(Warp &w, const Op &op) {
    const A *a = w.lanes<A>(op.a);
    write_lanes<D>(w, op.dst, [=](unsigned i) -> D { return F{}(a[i]); });
}
template <class F, class D, class A, class B>
void map2(Warp &w, const Op &op) {
    const A *a = w.lanes<A>(op.a);
    const B *b = w.lanes<B>(op.b);
    write_lanes<D>(w, op.dst, [=](unsigned i) -> D { return F{}(a[i], b[i]); });
}
template <class F, class D, class A, class B, class C>
void map3(Warp &w, const Op &op) {
    const A *a = w.lanes<A>(op.a);
    const B *b = w.lanes<B>(op.b);
    const C *c = w.lanes<C>(op.c);
    write_lanes<D>(w, op.dst, [=](unsigned i) -> D { return F{}(a[i], b[i], c[i]); });
}
// The fourth source's slot is in `extra`.
template <class F, class D, class A, class B, class C, class E>
void map4(Warp &w, const Op &op) {
    const A *a = w.lanes<A>(op.a);
    const B *b = w.lanes<B>(op.b);
    const C *c = w.lanes<C>(op.c);
    const E *e = w.lanes<E>(op.extra);
    write_lanes<D>(w, op.dst, [=](unsigned i) -> D { return F{}(a[i], b[i], c[i], e[i]); });
}

// Bit i of the result = f(i). Mask is a signed integer as wide as the lanes that f compares, so that the comparison
// stays in vector registers until one instruction collects the sign bits.
template <class Mask, class F>
inline uint32_t collect_lanes(F f) {
    alignas(64) Mask mask[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) mask[i] = f(i) ? Mask(-1) : Mask(0);
    uint32_t bits = 0;
#if defined(__AVX2__)
    if constexpr (sizeof(Mask) == 2) {
        const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i *>(mask));
        const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i *>(mask + 16));
        bits = uint32_t(_mm256_movemask_epi8(_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8)));
    } else if constexpr (sizeof(Mask) == 4) {
        for (unsigned k = 0; k < 4; ++k)
            bits |= uint32_t(_mm256_movemask_ps(_mm256_load_ps(reinterpret_cast<const float *>(mask + 8 * k))))
                    << 8 * k;
    } else {
        for (unsigned k = 0; k < 8; ++k)
            bits |= uint32_t(_mm256_movemask_pd(_mm256_load_pd(reinterpret_cast<const double *>(mask + 4 * k))))
                    << 4 * k;
    }
#else
    for (unsigned i = 0; i < kLanes; ++i) bits |= uint32_t(mask[i] & 1) << i;
#endif
    return bits;
}
inline void write_mask(Warp &w, uint32_t slot, uint32_t bits) {
    uint32_t &p = w.predicate(slot);
    p = (p & ~w.exec) | (bits & w.exec);
}

// Runs a handler in another rounding mode of the host. It only loads, computes and stores. Ends the launch on a host
// that has no such mode, as WebAssembly, whose fesetround() says nothing of it.
void run_rounded(Handler, int mode, Warp &, const Op &);

template <Handler H, int Mode>
void rounded(Warp &w, const Op &op) {
    run_rounded(H, Mode, w, op);
}

// The signed or unsigned integer, or the float, of a PTX type.
template <class T>
inline constexpr ptx::Type kTypeOf = ptx::Type::none;
template <>
inline constexpr ptx::Type kTypeOf<uint8_t> = ptx::Type::u8;
template <>
inline constexpr ptx::Type kTypeOf<int8_t> = ptx::Type::s8;
template <>
inline constexpr ptx::Type kTypeOf<uint16_t> = ptx::Type::u16;
template <>
inline constexpr ptx::Type kTypeOf<int16_t> = ptx::Type::s16;
template <>
inline constexpr ptx::Type kTypeOf<uint32_t> = ptx::Type::u32;
template <>
inline constexpr ptx::Type kTypeOf<int32_t> = ptx::Type::s32;
template <>
inline constexpr ptx::Type kTypeOf<uint64_t> = ptx::Type::u64;
template <>
inline constexpr ptx::Type kTypeOf<int64_t> = ptx::Type::s64;
template <>
inline constexpr ptx::Type kTypeOf<float> = ptx::Type::f32;
template <>
inline constexpr ptx::Type kTypeOf<double> = ptx::Type::f64;
template <class T>
std::string type_suffix() {
    return std::string(".") + ptx::type_name(kTypeOf<T>);
}

// Adds text + ".type" for a functor over lanes of one type.
template <class F, class D, class A>
void add1(AluForms &forms, const std::string &text, OpClass cls) {
    forms[text] = {&map1<F, D, A>, cls, kTypeOf<D>, {kTypeOf<A>}};
}
template <class F, class D, class A, class B>
void add2(AluForms &forms, const std::string &text, OpClass cls) {
    forms[text] = {&map2<F, D, A, B>, cls, kTypeOf<D>, {kTypeOf<A>, kTypeOf<B>}};
}
template <class F, class D, class A, class B, class C>
void add3(AluForms &forms, const std::string &text, OpClass cls) {
    forms[text] = {&map3<F, D, A, B, C>, cls, kTypeOf<D>, {kTypeOf<A>, kTypeOf<B>, kTypeOf<C>}};
}
template <class F, class D, class A, class B, class C, class E>
void add4(AluForms &forms, const std::string &text, OpClass cls) {
    forms[text] = {&map4<F, D, A, B, C, E>, cls, kTypeOf<D>, {kTypeOf<A>, kTypeOf<B>, kTypeOf<C>, kTypeOf<E>}};
}

// All forms, built on first use.
const AluForms &alu_forms();

// The form of `text`, or of `text` + "/3" where the instruction has three sources; null if there is none.
const AluForm *find_form(const std::string &text, size_t sources);

// Registers as wide as the type, or (sources of cvt) wider.
enum class Width { exact, at_least };

// Emits `form` with the instruction's operands in order (destination first). The result is valid until the next emit.
// Operands that do not fit the form's types are refused by message.
Op &emit_form(Lowering &, const ptx::Instruction &, const AluForm &, Width = Width::exact);

// What is wrong with the modifiers of an instruction that has no form.
std::string why_no_form(const ptx::Instruction &);

// find_form of the instruction's own text, and emit_form; unsupported where there is none.
void lower_by_text(Lowering &, const ptx::Instruction &);

// The slot of a destination whose register must be exactly as wide as `type`.
uint32_t alu_destination(Lowering &, const ptx::Instruction &, const ptx::Operand &, ptx::Type);
// The slot of a source; predicates and other registers do not stand for each other.
uint32_t alu_source(Lowering &, const ptx::Instruction &, const ptx::Operand &, ptx::Type, Width = Width::exact);
// Refuses an instruction that has not `count` operands.
void expect_operands(Lowering &, const ptx::Instruction &, size_t count);

}  // namespace warpsim
