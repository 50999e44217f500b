// Constant expressions: the C operators on 64-bit integers, and signed float literals.
#include <array>
#include <limits>

#include "ptx/parser_impl.h"

namespace warpsim::ptx {
namespace {

constexpr unsigned kMaxDepth = 64;  // of parentheses and signs

struct Operator {
    std::string_view text;
    int precedence;  // higher binds tighter
};
constexpr std::array<Operator, 18> kOperators = {{
    {"||", 1},
    {"&&", 2},
    {"|", 3},
    {"^", 4},
    {"&", 5},
    {"==", 6},
    {"!=", 6},
    {"<", 7},
    {">", 7},
    {"<=", 7},
    {">=", 7},
    {"<<", 8},
    {">>", 8},
    {"+", 9},
    {"-", 9},
    {"*", 10},
    {"/", 10},
    {"%", 10},
}};

// Wraps around like the 64-bit machine; the caller has excluded division by zero.
int64_t apply(std::string_view op, int64_t left, int64_t right) {
    const uint64_t a = static_cast<uint64_t>(left), b = static_cast<uint64_t>(right);
    if (op == "||") return left || right;
    if (op == "&&") return left && right;
    if (op == "|") return left | right;
    if (op == "^") return left ^ right;
    if (op == "&") return left & right;
    if (op == "==") return left == right;
    if (op == "!=") return left != right;
    if (op == "<") return left < right;
    if (op == ">") return left > right;
    if (op == "<=") return left <= right;
    if (op == ">=") return left >= right;
    if (op == "<<") return b < 64 ? static_cast<int64_t>(a << b) : 0;
    if (op == ">>") return left >> (b < 64 ? b : 63);
    if (op == "+") return static_cast<int64_t>(a + b);
    if (op == "-") return static_cast<int64_t>(a - b);
    if (op == "*") return static_cast<int64_t>(a * b);
    if (right == -1) return op == "/" ? static_cast<int64_t>(0 - a) : 0;  // the minimum / -1 must not trap
    return op == "/" ? left / right : left % right;
}

}  // namespace

Parser::Constant Parser::constant() {
    return constant_binary(1, 0);
}

Parser::Constant Parser::constant_unary(unsigned depth) {
    if (depth > kMaxDepth) fail("expression is nested too deeply");
    Constant value;
    if (current_.kind == TokenKind::integer) {
        value.integer = static_cast<int64_t>(current_.bits);
        advance();
        return value;
    }
    if (current_.kind == TokenKind::real) {
        value.is_real = true;
        value.real_bits = current_.bits;
        value.real_type = current_.real_type;
        advance();
        return value;
    }
    if (current_.kind == TokenKind::identifier && current_.text == "WARP_SZ") {
        advance();
        value.integer = 32;
        return value;
    }
    if (accept("(")) {
        if (accept_dotted("s64") || accept_dotted("u64")) {  // a cast: both are 64 bits here
            expect(")");
            return constant_unary(depth + 1);
        }
        value = constant_binary(1, depth + 1);
        expect(")");
        return value;
    }
    if (!at("-") && !at("+") && !at("~") && !at("!")) unexpected("a constant");
    const char sign = current_.text[0];
    advance();
    value = constant_unary(depth + 1);
    if (value.is_real) {
        if (sign == '-')
            value.real_bits ^= value.real_type == Type::f32 ? 1ull << 31 : 1ull << 63;
        else if (sign != '+')
            fail("an integer operator on a float");
        return value;
    }
    if (sign == '-') value.integer = static_cast<int64_t>(0 - static_cast<uint64_t>(value.integer));
    if (sign == '~') value.integer = ~value.integer;
    if (sign == '!') value.integer = !value.integer;
    return value;
}

Parser::Constant Parser::constant_binary(int min_precedence, unsigned depth) {
    if (depth > kMaxDepth) fail("expression is nested too deeply");
    Constant left = constant_unary(depth);
    while (current_.kind == TokenKind::punctuation) {
        const Operator *op = nullptr;
        for (const Operator &candidate : kOperators)
            if (candidate.text == current_.text) op = &candidate;
        if (!op || op->precedence < min_precedence) break;
        advance();
        const Constant right = constant_binary(op->precedence + 1, depth + 1);
        if (left.is_real || right.is_real) fail("an integer operator on a float");
        if ((op->text == "/" || op->text == "%") && right.integer == 0) fail("division by zero");
        left.integer = apply(op->text, left.integer, right.integer);
    }
    return left;
}

}  // namespace warpsim::ptx
