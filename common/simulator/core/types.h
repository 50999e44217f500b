// The types of PTX, and where in a source file something stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpsim::ptx {

enum class Type : uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    tf32,
    f32,
    f64,
    e4m3,
    e5m2,
    e4m3x2,
    e5m2x2,
    u16x2,
    s16x2,
    f32x2,
};
unsigned type_bytes(Type);              // 4 for f32, f16x2; 0 for none and pred
Type type_from_name(std::string_view);  // "f32" -> f32; none if it is no type
const char *type_name(Type);
bool is_signed(Type);
bool is_float(Type);

// From .loc: index into the files of a module, and a 1-based line. line 0: unknown. calls: of code that was inlined,
// the innermost of the calls that lead there, its place in the module's table of calls plus one; 0: none.
struct SourceLocation {
    uint32_t file = 0, line = 0, calls = 0;
};

// A call that was inlined: of `function` (as it is mangled; empty: unknown), made at `at`, which has the next call out.
struct InlinedCall {
    std::string function;
    SourceLocation at;
};

}  // namespace warpsim::ptx
