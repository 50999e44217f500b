// Damages PTX where a compiler or a reader of PTX would look: words, numbers, lines.
#include <algorithm>
#include <cctype>

#include "fuzz.h"

namespace fuzz {
namespace {

enum class Kind { blank, number, dotted, reg, word, other };

struct Token {
    Kind kind;
    Bytes text;
};

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

std::vector<Token> tokens_of(const Bytes &text) {
    std::vector<Token> tokens;
    for (size_t at = 0; at < text.size();) {
        const char c = text[at];
        Kind kind = Kind::other;
        size_t end = at + 1;
        if (std::isspace(static_cast<unsigned char>(c))) {
            kind = Kind::blank;
            while (c != '\n' && end < text.size() && text[end] != '\n' &&
                   std::isspace(static_cast<unsigned char>(text[end])))
                ++end;
        } else if (is_word(c) || ((c == '.' || c == '%') && end < text.size() && is_word(text[end]))) {
            kind = c == '.'                                           ? Kind::dotted
                   : c == '%'                                         ? Kind::reg
                   : std::isdigit(static_cast<unsigned char>(c)) != 0 ? Kind::number
                                                                      : Kind::word;
            while (end < text.size() && is_word(text[end])) ++end;
        }
        tokens.push_back({kind, text.substr(at, end - at)});
        at = end;
    }
    return tokens;
}

// [begin, end) of the line that holds token `at`, its end included.
std::pair<size_t, size_t> line_of(const std::vector<Token> &tokens, size_t at) {
    size_t begin = at, end = at;
    while (begin > 0 && tokens[begin - 1].text != "\n") --begin;
    while (end < tokens.size() && tokens[end].text != "\n") ++end;
    return {begin, std::min(end + 1, tokens.size())};
}

// Words that a text of the corpus may lack.
const std::vector<Bytes> kDotted = {
    ".u8",     ".u16",    ".u32",    ".u64",     ".s8",      ".s16",   ".s32",  ".s64",    ".b8",           ".b16",
    ".b32",    ".b64",    ".b128",   ".f16",     ".f16x2",   ".bf16",  ".f32",  ".f64",    ".pred",         ".v2",
    ".v4",     ".shared", ".global", ".local",   ".param",   ".const", ".reg",  ".sync",   ".aligned",      ".wide",
    ".lo",     ".hi",     ".sat",    ".ftz",     ".rn",      ".rzi",   ".cc",   ".approx", ".volatile",     ".align",
    ".extern", ".weak",   ".entry",  ".func",    ".x4",      ".trans", ".m8n8", ".idx",    ".all",          ".ballot",
    ".add",    ".cas",    ".exch",   ".acquire", ".release", ".gpu",   ".cta",  ".alias",  ".branchtargets"};
const std::vector<Bytes> kHopper = {
    ".mbarrier",        ".arrive",      ".expect_tx",  ".parity", ".relaxed", ".noinc",   ".bulk",
    ".tensor",          ".1d",          ".2d",         ".3d",     ".tile",    ".cluster", ".multicast::cluster",
    ".shared::cluster", ".shared::cta", ".bulk_group", ".read",   ".noftz",   ".box_dim", ".rank",
    ".m64n8k16",        ".m64n16k32",   ".e4m3",       ".tf32",   ".inc",     ".dec"};

Bytes decimal(Random &random) {
    const uint64_t number = edge_number(random);
    return random.one_in(4) ? "-" + std::to_string(number >> 1) : std::to_string(number);
}

void mutate_once(std::vector<Token> &tokens, const std::vector<Token> &other, Random &random) {
    if (tokens.empty()) {
        tokens = other;
        return;
    }
    size_t at = random.below(tokens.size());
    while (tokens[at].kind == Kind::blank && at + 1 < tokens.size()) ++at;
    Token &token = tokens[at];
    const auto find_like = [&](const std::vector<Token> &list) -> const Token * {
        if (list.empty()) return nullptr;
        const size_t first = random.below(list.size());
        for (size_t i = 0; i < list.size(); ++i) {
            const Token &candidate = list[(first + i) % list.size()];
            if (candidate.kind == token.kind && candidate.text != token.text) return &candidate;
        }
        return nullptr;
    };
    const auto [begin, end] = line_of(tokens, at);
    const auto position = [&](size_t index) { return tokens.begin() + static_cast<std::ptrdiff_t>(index); };
    switch (random.below(13)) {
        case 0:
        case 1:
            if (const Token *like = find_like(tokens)) token = Token(*like);
            break;
        case 2:
        case 3:
            if (const Token *like = find_like(other)) token = Token(*like);
            break;
        case 4:
            if (token.kind == Kind::dotted) token.text = random.of(random.one_in(3) ? kHopper : kDotted);
            if (token.kind == Kind::number || token.kind == Kind::reg) token = {Kind::number, decimal(random)};
            break;
        case 5:
            for (; at < tokens.size(); ++at) {
                if (tokens[at].kind != Kind::number) continue;
                tokens[at].text = decimal(random);
                break;
            }
            break;
        case 6:
            tokens.erase(position(at));
            break;
        case 7:
            tokens.insert(position(at), Token(token));
            break;
        case 8:
            std::swap(token, tokens[random.below(tokens.size())]);
            break;
        case 9:
            tokens.erase(position(begin), position(end));
            break;
        case 10: {
            const auto [first, last] = line_of(tokens, random.below(tokens.size()));
            const std::vector<Token> line(position(first), position(last));
            tokens.insert(position(begin), line.begin(), line.end());
            break;
        }
        case 11: {
            if (other.empty()) break;
            const auto [first, last] = line_of(other, random.below(other.size()));
            tokens.insert(position(begin), other.begin() + static_cast<std::ptrdiff_t>(first),
                          other.begin() + static_cast<std::ptrdiff_t>(last));
            break;
        }
        default: {
            if (!random.one_in(4)) {
                token.text[random.below(token.text.size())] ^= static_cast<char>(1 << random.below(8));
                break;
            }
            // The same again and again: depth, and counts.
            const std::vector<Token> piece(position(random.one_in(2) ? at : begin), position(std::max(at + 1, end)));
            std::vector<Token> copies;
            const uint64_t times = 1ull << random.below(10);
            for (uint64_t i = 0; i < times && copies.size() < 8192; ++i)
                copies.insert(copies.end(), piece.begin(), piece.end());
            tokens.insert(position(at), copies.begin(), copies.end());
        }
    }
}

}  // namespace

uint64_t edge_number(Random &random) {
    static const std::vector<uint64_t> kEdges = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256};
    switch (random.below(4)) {
        case 0:
            return random.of(kEdges);
        case 1:
            return (1ull << random.below(64)) + random.below(3) - 1;
        case 2:
            return 0 - random.of(kEdges);
        default:
            return random.below(1 << 12);
    }
}

Bytes mutate_ptx(const Bytes &input, const Bytes &other, Random &random) {
    std::vector<Token> tokens = tokens_of(input);
    const std::vector<Token> material = tokens_of(other);
    for (uint64_t n = 1 + random.below(random.one_in(4) ? 16 : 3); n > 0; --n) mutate_once(tokens, material, random);
    Bytes text;
    for (const Token &token : tokens) text += token.text;
    text.resize(std::min(text.size(), kMostInput));
    return text;
}

}  // namespace fuzz
