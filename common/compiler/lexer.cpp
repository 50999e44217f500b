#include "lexer.h"

#include "errors.h"

namespace compiler {
namespace {

bool of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$' || c == '-';
}

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

void Lexer::fail(const std::string &what) const {
    throw Refusal("line " + std::to_string(line) + " of the IR: " + what);
}

// Behind the opening quote; up to the closing one.
std::string Lexer::quoted() {
    std::string found;
    while (at_ < text_.size() && text_[at_] != '"') {
        char c = text_[at_++];
        if (c == '\n') ++line;
        if (c == '\\' && at_ + 1 < text_.size()) {
            if (text_[at_] == '\\') {
                ++at_;
            } else if (digit(text_[at_]) >= 0 && digit(text_[at_ + 1]) >= 0) {
                c = static_cast<char>(digit(text_[at_]) * 16 + digit(text_[at_ + 1]));
                at_ += 2;
            }
        }
        found += c;
    }
    if (at_ == text_.size()) fail("a string does not end");
    ++at_;
    return found;
}

std::string Lexer::name() {
    if (at_ < text_.size() && text_[at_] == '"') return ++at_, quoted();
    const size_t first = at_;
    while (at_ < text_.size() && of_name(text_[at_])) ++at_;
    return std::string(text_.substr(first, at_ - first));
}

void Lexer::advance() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') ++line;
        if (c == ';') {
            while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            ++at_;
        } else {
            break;
        }
    }
    text.clear();
    if (at_ == text_.size()) {
        token = Token::end;
        return;
    }
    const bool begins_line = at_ == 0 || text_[at_ - 1] == '\n';
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == '%' || c == '@' || c == '$' || c == '#' || c == '!') {
        ++at_;
        token = c == '%' ? Token::local : c == '@' ? Token::global : c == '$' ? Token::comdat : Token::group;
        if (c == '!') {
            token = Token::metadata;
            if (next != '"') text = name();  // !"..." is ! and a string
            return;
        }
        text = name();
        if (c == '#') text.insert(0, "#");
    } else if (c == '"') {
        ++at_;
        token = Token::string;
        text = quoted();
        if (begins_line && at_ < text_.size() && text_[at_] == ':') ++at_, token = Token::label;
    } else if (c == 'c' && next == '"') {
        at_ += 2;
        token = Token::bytes;
        text = quoted();
    } else if (text_.substr(at_, 3) == "...") {
        at_ += 3;
        token = Token::sign, text = "...";
    } else if (of_name(c) || c == '+') {
        if (c == '+') ++at_;
        text = (c == '+' ? "+" : "") + name();
        const bool is_number = (c >= '0' && c <= '9') || c == '-' || c == '+' || text.starts_with("f0x");
        token = is_number ? Token::number : Token::word;
        if (begins_line && at_ < text_.size() && text_[at_] == ':') {
            ++at_, token = Token::label;
        } else if (is_number && text.ends_with("e") && at_ < text_.size() && text_[at_] == '+') {
            ++at_;
            text += "+" + name();
        }
    } else {
        ++at_;
        token = Token::sign, text = std::string(1, c);
    }
}

}  // namespace compiler
