// Numbers of LLVM IR's text to bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir.h"

namespace compiler {

// Empty: no number of this type.
std::optional<uint64_t> number_bits(std::string_view text, const ir::Type *type);

// The lowest `bits` of it, 1 to 64.
uint64_t lowest(uint64_t value, unsigned bits);
int64_t sign_extended(uint64_t value, unsigned bits);

// Those of `type`: the nearest number, ties to even.
uint64_t float_bits(double value, const ir::Type *type);

}  // namespace compiler
