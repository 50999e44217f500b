// PTX text -> ptx::Module.
#pragma once

#include <stdexcept>
#include <string_view>

#include "ptx/ast.h"

namespace warpsim::ptx {

// Malformed PTX: what() is "PTX line 12: expected ';' before '}'".
struct ParseError : std::runtime_error {
    uint32_t line;
    ParseError(uint32_t line, const std::string &message);
};

// Parses a whole module. Bounded in memory by a small multiple of the text's size; never recurses
// deeper than a fixed limit. Throws ParseError.
Module parse(std::string_view text);

}  // namespace warpsim::ptx
