// PTX text -> tokens. Tokens are views into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/ast.h"

namespace warpsim::ptx {

enum class TokenKind : uint8_t {
    end,
    identifier,   // foo, %r1, $L__BB0_1, _
    dotted,       // .global, .v4, .L1::no_allocate: text is without the leading dot
    integer,      // bits
    real,         // bits, in the format of real_type
    string,       // text is what stands between the quotes, escapes untouched
    punctuation,  // one character, or << >> <= >= == != && ||
};

struct Token {
    TokenKind kind = TokenKind::end;
    Type real_type = Type::none;  // f32 for 0f..., f64 for 0d... and decimals
    uint32_t line = 1;            // 1-based
    std::string_view text;
    uint64_t bits = 0;
};

class Lexer {
  public:
    explicit Lexer(std::string_view text);
    // The next token; kind end for ever after the last. Throws ParseError on a character or number that PTX does not
    // have.
    Token next();

  private:
    void skip_blank();
    Token number(Token);
    Token string(Token);
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    std::string_view text_;
    size_t at_ = 0;
    uint32_t line_ = 1;
};

// A token as a message quotes it: "'foo'", "end of text"; long ones are cut, bytes that do not print are replaced.
std::string quoted(const Token &);

}  // namespace warpsim::ptx
