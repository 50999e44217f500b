// Words of textual LLVM IR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace compiler {

enum class Token {
    end,
    word,      // define, i32, x, ...
    local,     // %name, `text` without the sign
    global,    // @name
    metadata,  // !name, !7, or ! alone
    group,     // #7
    comdat,    // $name
    number,    // 12, -3, 1.5e+00, f0x3F800000, 0x...
    string,    // "...", unescaped
    bytes,     // c"...", unescaped
    label,     // name: at the begin of a block
    sign,      // one of = , ( ) [ ] { } < > * : | or ...
};

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    void advance();  // to the next token, which the fields then describe
    [[noreturn]] void fail(const std::string &what) const;

    Token token = Token::end;
    std::string text;
    int line = 1;

  private:
    std::string quoted();
    std::string name();

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace compiler
