#include "ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>

#include "ptx/parser.h"

namespace warpsim::ptx {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_word(char c) {
    return is_word_start(c) ? c != '%' : is_digit(c);
}

constexpr std::array<std::string_view, 8> kPairs = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kSingles = "{}()[]<>,;:=+-*/%&|^~!@?";

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) {
    while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);  // fat binaries store a C string
}

void Lexer::skip_blank() {
    for (;;) {
        const char c = peek();
        if (c == '\n') {
            ++line_, ++at_;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            ++at_;
        } else if (c == '/' && peek(1) == '/') {
            while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        } else if (c == '/' && peek(1) == '*') {
            const uint32_t opened = line_;
            at_ += 2;
            while (!(peek() == '*' && peek(1) == '/')) {
                if (at_ >= text_.size()) throw ParseError(opened, "comment is not closed");
                line_ += text_[at_++] == '\n';
            }
            at_ += 2;
        } else {
            return;
        }
    }
}

Token Lexer::string(Token token) {
    const size_t first = ++at_;
    while (peek() != '"') {
        if (at_ >= text_.size() || text_[at_] == '\n') throw ParseError(token.line, "string is not closed");
        at_ += text_[at_] == '\\' ? 2 : 1;
    }
    token.kind = TokenKind::string;
    token.text = text_.substr(first, at_ - first);
    ++at_;
    return token;
}

Token Lexer::number(Token token) {
    const size_t first = at_;
    const char second = peek(1) | 0x20;  // lower case
    int base = 10;
    size_t prefix = 0;
    if (peek() == '0') {
        if (second == 'f' || second == 'd') {  // the bits of a float in hex: 8 or 16 digits
            const size_t digits = second == 'f' ? 8 : 16;
            const char *begin = text_.data() + at_ + 2;
            if (at_ + 2 + digits > text_.size() ||
                std::from_chars(begin, begin + digits, token.bits, 16).ptr != begin + digits)
                throw ParseError(token.line, "a float literal needs " + std::to_string(digits) + " hex digits");
            at_ += 2 + digits;
            token.kind = TokenKind::real;
            token.real_type = second == 'f' ? Type::f32 : Type::f64;
            token.text = text_.substr(first, at_ - first);
            return token;
        }
        if (second == 'x')
            base = 16, prefix = 2;
        else if (second == 'b')
            base = 2, prefix = 2;
        else if (is_digit(peek(1)))
            base = 8, prefix = 1;
    }
    const char *begin = text_.data() + at_ + prefix, *end = text_.data() + text_.size();
    auto [stop, error] = std::from_chars(begin, end, token.bits, base);
    token.kind = TokenKind::integer;
    const char after = stop != end ? *stop : '\0';
    if (base != 16 && base != 2 && (after == '.' || (after | 0x20) == 'e')) {
        double value = 0;
        begin = text_.data() + at_;
        const auto decimal = std::from_chars(begin, end, value);
        stop = decimal.ptr, error = decimal.ec;
        token.kind = TokenKind::real;
        token.real_type = Type::f64;
        if (error == std::errc::result_out_of_range) {  // infinity or zero, as a C compiler would
            value = std::strtod(std::string(begin, stop).c_str(), nullptr);
            error = {};
        }
        token.bits = std::bit_cast<uint64_t>(value);
    }
    if (error == std::errc::result_out_of_range) throw ParseError(token.line, "number does not fit into 64 bits");
    if (error != std::errc{}) throw ParseError(token.line, "malformed number");
    at_ = stop - text_.data();
    token.text = text_.substr(first, at_ - first);
    if (token.kind == TokenKind::integer && (peek() == 'U' || peek() == 'u')) ++at_;
    if (is_word(peek())) throw ParseError(token.line, "malformed number");
    return token;
}

Token Lexer::next() {
    skip_blank();
    Token token;
    token.line = line_;
    const size_t first = at_;
    if (at_ >= text_.size()) return token;
    const char c = peek();
    if (is_word_start(c)) {
        // A lone % is the modulo operator of constant expressions.
        if (c != '%' || is_word(peek(1))) {
            ++at_;
            while (is_word(peek())) ++at_;
            token.kind = TokenKind::identifier;
            token.text = text_.substr(first, at_ - first);
            return token;
        }
    }
    if (c == '.' && is_word(peek(1))) {
        do {
            at_ += at_ == first ? 1 : 2;
            while (is_word(peek())) ++at_;
        } while (peek() == ':' && peek(1) == ':' && is_word(peek(2)));
        token.kind = TokenKind::dotted;
        token.text = text_.substr(first + 1, at_ - first - 1);
        return token;
    }
    if (is_digit(c)) return number(token);
    if (c == '"') return string(token);
    token.kind = TokenKind::punctuation;
    for (std::string_view pair : kPairs)
        if (text_.substr(at_, 2) == pair) {
            token.text = text_.substr(at_, 2), at_ += 2;
            return token;
        }
    token.text = text_.substr(at_, 1);
    if (kSingles.find(c) == std::string_view::npos) throw ParseError(line_, "unexpected character " + quoted(token));
    ++at_;
    return token;
}

std::string quoted(const Token &token) {
    if (token.kind == TokenKind::end) return "end of text";
    std::string text = token.kind == TokenKind::dotted ? "." : "";
    text += token.text.substr(0, 60);
    if (token.text.size() > 60) text += "...";
    for (char &c : text)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    return "'" + text + "'";
}

}  // namespace warpsim::ptx
