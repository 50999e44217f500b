#include "printing.h"

#include <array>
#include <charconv>

#include "coalescing.h"
#include "format.h"

namespace compiler {
namespace {

using machine::Register;

constexpr std::array kPrefixes = {"%p", "%rs", "%r", "%rd", "%f", "%fd"};
constexpr std::array kTypes = {".pred", ".b16", ".b32", ".b64", ".f32", ".f64"};

class Names {
  public:
    Names(const machine::Function &function, std::vector<uint32_t> representatives)
        : function_(function), representatives_(std::move(representatives)), names_(function.variables.size()) {}

    const std::string &of(uint32_t variable) {
        std::string &name = names_[representatives_[variable]];
        if (name.empty()) {
            const auto kind = static_cast<size_t>(function_.variables[variable]);
            name = kPrefixes[kind] + std::to_string(counts_[kind]++);
        }
        return name;
    }

    bool is_one(uint32_t a, uint32_t b) const { return representatives_[a] == representatives_[b]; }

    std::string filled(const std::string &text) {
        std::string found;
        for (size_t at = 0; at < text.size(); ++at) {
            if (text[at] != machine::kUse && text[at] != machine::kDefinition) {
                found += text[at];
                continue;
            }
            uint32_t variable = 0;
            const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), variable);
            at = static_cast<size_t>(end - text.data());  // the end's sign
            found += of(variable);
        }
        return found;
    }

    std::string declarations() const {
        std::string found;
        for (size_t kind = 0; kind < counts_.size(); ++kind)
            if (counts_[kind]) found += format(".reg {} {}<{}>;\n", kTypes[kind], kPrefixes[kind], counts_[kind]);
        return found;
    }

  private:
    const machine::Function &function_;
    std::vector<uint32_t> representatives_;
    std::vector<std::string> names_;
    std::array<size_t, 6> counts_{};
};

}  // namespace

std::string print_body(const machine::Function &function, DebugLines &lines) {
    Names names(function, coalesce(function));
    std::string text = lines.begin(function.debug);
    for (size_t i = 0; i < function.blocks.size(); ++i) {
        const machine::Block &block = function.blocks[i];
        text += block.label + ":\n";
        for (size_t k = 0; k < block.operations.size(); ++k) {
            const machine::Operation &one = block.operations[k];
            if (one.is_copy && names.is_one(one.defined[0], one.used[0])) continue;
            const bool is_last = k + 1 == block.operations.size();
            const bool falls_through =
                is_last && i + 1 < function.blocks.size() && one.text == "bra " + function.blocks[i + 1].label;
            if (falls_through) continue;
            text += lines.lines(one.debug);
            text += names.filled(one.text);
            text += one.is_assembly ? "\n" : ";\n";
        }
    }
    std::string head = "{\n";
    if (function.local_bytes)
        head += format(".local .align {} .b8 $local[{}];\n", function.local_alignment, function.local_bytes);
    return head + names.declarations() + text + "}\n";
}

}  // namespace compiler
