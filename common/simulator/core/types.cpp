#include "core/types.h"

#include <array>
#include <cstddef>

namespace warpsim::ptx {
namespace {

struct TypeTraits {
    Type type;
    const char *name;
    uint8_t bytes;
    char kind;  // 'b' bits, 'u' unsigned, 's' signed, 'f' float
};

// In the order of the enumeration.
constexpr std::array<TypeTraits, 29> kTypes = {{
    {Type::none, "none", 0, 'b'},     {Type::pred, "pred", 0, 'b'},     {Type::b8, "b8", 1, 'b'},
    {Type::b16, "b16", 2, 'b'},       {Type::b32, "b32", 4, 'b'},       {Type::b64, "b64", 8, 'b'},
    {Type::b128, "b128", 16, 'b'},    {Type::u8, "u8", 1, 'u'},         {Type::u16, "u16", 2, 'u'},
    {Type::u32, "u32", 4, 'u'},       {Type::u64, "u64", 8, 'u'},       {Type::s8, "s8", 1, 's'},
    {Type::s16, "s16", 2, 's'},       {Type::s32, "s32", 4, 's'},       {Type::s64, "s64", 8, 's'},
    {Type::f16, "f16", 2, 'f'},       {Type::f16x2, "f16x2", 4, 'f'},   {Type::bf16, "bf16", 2, 'f'},
    {Type::bf16x2, "bf16x2", 4, 'f'}, {Type::tf32, "tf32", 4, 'f'},     {Type::f32, "f32", 4, 'f'},
    {Type::f64, "f64", 8, 'f'},       {Type::e4m3, "e4m3", 1, 'f'},     {Type::e5m2, "e5m2", 1, 'f'},
    {Type::e4m3x2, "e4m3x2", 2, 'f'}, {Type::e5m2x2, "e5m2x2", 2, 'f'}, {Type::u16x2, "u16x2", 4, 'u'},
    {Type::s16x2, "s16x2", 4, 's'},   {Type::f32x2, "f32x2", 8, 'f'},
}};

const TypeTraits &traits(Type type) {
    return kTypes[static_cast<size_t>(type)];
}

}  // namespace

unsigned type_bytes(Type type) {
    return traits(type).bytes;
}

Type type_from_name(std::string_view name) {
    for (size_t i = 1; i < kTypes.size(); ++i)
        if (name == kTypes[i].name) return kTypes[i].type;
    return Type::none;
}

const char *type_name(Type type) {
    return traits(type).name;
}
bool is_signed(Type type) {
    return traits(type).kind == 's';
}
bool is_float(Type type) {
    return traits(type).kind == 'f';
}

}  // namespace warpsim::ptx
