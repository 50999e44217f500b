#include <algorithm>
#include <array>
#include <cstdlib>

#include "ptx/parser_impl.h"

namespace warpsim::ptx {
namespace {

// Directives between a function's head and its body that carry numbers, or none.
constexpr std::array<std::string_view, 12> kPerformanceDirectives = {
    "maxntid",           "reqntid",         "minnctapersm",   "maxnctapersm", "maxnreg",
    "reqnctapercluster", "explicitcluster", "maxclusterrank", "abi_preserve", "abi_preserve_control",
    "blocksareclusters", "unique",
};

// A string of PTX as it was before it was written: nvcc escapes quotes, backslashes and, by three octal digits, what is
// no ASCII.
std::string unescaped(std::string_view text) {
    std::string found;
    const auto octal = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '7'; };
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            found += text[i];
        } else if (octal(i + 1) && octal(i + 2) && octal(i + 3)) {
            found += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            found += text[++i];
        }
    }
    return found;
}

}  // namespace

void Parser::version() {
    // "9.0" is a decimal to the lexer: take its digits.
    const std::string_view text = current_.text;
    const size_t point = text.find('.');
    unsigned value = 0;
    bool good = current_.kind == TokenKind::real && point != std::string_view::npos && text.size() <= 6;
    for (char c : text)
        if (c != '.') good = good && c >= '0' && c <= '9', value = value * 10 + static_cast<unsigned>(c - '0');
    if (!good) unexpected("a version such as 9.0");
    module_.version = value;
    advance();
}

void Parser::target() {
    do {
        const std::string_view name = identifier("a target such as sm_80");
        if (name.starts_with("sm_") || module_.target.empty()) module_.target = name;
        module_.debug = module_.debug || name == "debug";
    } while (accept(","));
}

// .file 1 "path" [, timestamp, size]
void Parser::file() {
    const uint64_t index = unsigned_constant("the file index");
    if (current_.kind != TokenKind::string) unexpected("a file name");
    if (index <= UINT32_MAX) module_.files[static_cast<uint32_t>(index)] = unescaped(current_.text);
    advance();
    while (accept(",")) unsigned_constant("a number");
}

// .loc 1 12 3 [, function_name LABEL[+N] , inlined_at 1 20 5]: the position itself is the innermost. Where that call
// was inlined in its turn, the newest .loc of its own position says.
void Parser::loc() {
    constexpr unsigned kDeepestInlining = 64;
    Position position{unsigned_constant("the file index"), unsigned_constant("the line number"), 0};
    if (current_.kind == TokenKind::integer) position[2] = unsigned_constant("the column");
    Inlining inlining;
    bool inlined = false;
    while (at(",") && ahead_.kind == TokenKind::identifier &&
           (ahead_.text == "function_name" || ahead_.text == "inlined_at")) {
        advance();
        const bool is_name = current_.text == "function_name";
        advance();
        if (is_name) {
            inlining.label = identifier("a label");
            if (accept("+")) unsigned_constant("an offset");
        } else {
            for (size_t i = 0; current_.kind == TokenKind::integer; ++i) {
                const uint64_t number = unsigned_constant("a position");
                if (i < inlining.caller.size()) inlining.caller[i] = number;
            }
            inlined = true;
        }
    }
    if (inlined) {
        inlined_at_[position] = inlining;
    } else {
        inlined_at_.erase(position);
    }
    std::vector<Inlining> chain;
    for (auto up = inlined_at_.find(position); up != inlined_at_.end() && chain.size() < kDeepestInlining;
         up = inlined_at_.find(chain.back().caller)) {
        chain.push_back(up->second);
    }
    source_ = location(position, 0);
    for (size_t k = chain.size(); k-- > 0;) source_.calls = call_number(chain[k], source_.calls);
}

SourceLocation Parser::location(const Position &position, uint32_t calls) {
    const auto narrow = [](uint64_t number) { return static_cast<uint32_t>(std::min<uint64_t>(number, UINT32_MAX)); };
    return {static_cast<uint32_t>(position[0]), narrow(position[1]), calls};
}

// The place in the module's table, plus one, of a call whose next one out is `outer`. Its label stands for its name
// until the section that has the names.
uint32_t Parser::call_number(const Inlining &inlining, uint32_t outer) {
    const SourceLocation at = location(inlining.caller, outer);
    const auto [found, is_new] = call_numbers_.try_emplace({at.file, at.line, outer, inlining.label});
    if (is_new) {
        module_.calls.push_back({std::string(inlining.label), at});
        found->second = static_cast<uint32_t>(module_.calls.size());
    }
    return found->second;
}

// Debug information. Of it .debug_str has the names of inlined functions, by label:
//     $L__info_string0:
//     .b8 95,90, ... ,0
void Parser::section() {
    if (current_.kind != TokenKind::dotted && current_.kind != TokenKind::identifier) unexpected("a section name");
    const bool has_names = current_.text == "debug_str" || current_.text == ".debug_str";
    advance();
    expect("{");
    std::unordered_map<std::string_view, std::string> names;
    std::string *name = nullptr;
    while (!at("}")) {
        if (current_.kind == TokenKind::end) unexpected("'}'");
        if (current_.kind == TokenKind::identifier) name = &names[current_.text];
        if (name && current_.kind == TokenKind::integer && current_.bits) name->push_back(char(current_.bits));
        advance();
    }
    advance();
    if (has_names) name_calls(names);
}

// Gives the calls since the last section their functions' names. (Modules that are linked have one such section each.)
void Parser::name_calls(const std::unordered_map<std::string_view, std::string> &names) {
    for (; named_calls_ < module_.calls.size(); ++named_calls_) {
        std::string &function = module_.calls[named_calls_].function;
        const auto found = names.find(function);
        function = found == names.end() ? "" : found->second;
    }
    call_numbers_.clear();
}

void Parser::alias() {
    const std::string name(identifier("a function name"));
    expect(",");
    aliases_[name] = identifier("a function name");
    expect(";");
}

// .attribute(.managed, .unified(1, 2)): nothing that running needs.
void Parser::attribute() {
    if (!accept_dotted("attribute")) return;
    expect("(");
    for (int open = 1; open > 0; advance()) {
        if (current_.kind == TokenKind::end) unexpected("')'");
        open += at("(") ? 1 : at(")") ? -1 : 0;
    }
}

bool Parser::function_directive(Function &function) {
    if (accept_dotted("noreturn")) return true;
    if (at_dotted("attribute")) return attribute(), true;
    if (accept_dotted("pragma")) {
        for (; current_.kind == TokenKind::string || at(","); advance()) {
            constexpr std::string_view kUsedBytes = "used_bytes_mask ";
            if (current_.kind == TokenKind::string && current_.text.starts_with(kUsedBytes))
                used_bytes_ = static_cast<uint32_t>(
                    std::strtoul(std::string(current_.text.substr(kUsedBytes.size())).c_str(), nullptr, 0));
        }
        accept(";");
        return true;
    }
    if (current_.kind != TokenKind::dotted) return false;
    const auto known = std::find(kPerformanceDirectives.begin(), kPerformanceDirectives.end(), current_.text);
    if (known == kPerformanceDirectives.end()) fail("unknown function directive " + quoted(current_));
    advance();
    std::vector<uint32_t> &values = function.directives[std::string(*known)];
    values.clear();
    if (current_.kind != TokenKind::integer) return true;
    do {
        const uint64_t value = unsigned_constant("the directive's value");
        if (value > UINT32_MAX || values.size() >= 3) fail("." + std::string(*known) + " is out of range");
        values.push_back(static_cast<uint32_t>(value));
    } while (accept(","));
    return true;
}

// name: .branchtargets L1, L2;
void Parser::branch_targets(uint32_t label) {
    do {
        const uint32_t line = current_.line, position = static_cast<uint32_t>(function_->labels[label].targets.size());
        label_scopes_.back().pending.push_back({identifier("a label"), line, true, label, position});
        function_->labels[label].targets.push_back(0);
    } while (accept(","));
    expect(";");
}

// name: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]);
void Parser::call_prototype(std::string_view name) {
    Function prototype;
    prototype.is_declaration = true;
    prototype.name = unique_name(name);
    const auto list = [&](std::vector<Variable> &variables) {
        if (!accept("(") || accept(")")) return;
        do {
            if (!accept_dotted("param") && !accept_dotted("reg")) unexpected("'.param'");
            variables.push_back(declarator(specifiers(Space::param)).variable);
        } while (accept(","));
        expect(")");
    };
    list(prototype.returns);
    identifier("'_'");
    list(prototype.parameters);
    while (function_directive(prototype)) {
    }
    expect(";");
    if (!prototypes_.declare(name, static_cast<uint32_t>(local_names_.size())))
        fail("'" + std::string(name) + "' is declared twice");
    local_names_.push_back({prototype.name, Type::none});
}

}  // namespace warpsim::ptx
