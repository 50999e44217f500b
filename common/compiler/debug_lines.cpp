#include "debug_lines.h"
#include "format.h"

#include <charconv>

namespace compiler {
namespace {

int number(const std::string &text) {
    int found = -1;
    std::from_chars(text.data(), text.data() + text.size(), found);
    return found;
}

const std::string &field(const ir::Metadata &node, std::string_view name) {
    static const std::string none;
    const auto found = node.fields.find(name);
    return found == node.fields.end() ? none : found->second;
}

const ir::Metadata *find(const ir::Module &module, const std::string &reference) {
    const auto found = module.metadata.find(number(reference));
    return found == module.metadata.end() ? nullptr : &found->second;
}

std::string path_of(const ir::Module &module, const ir::Metadata &scope) {
    const ir::Metadata *file = find(module, field(scope, "file"));
    if (!file) return "";
    const std::string &name = field(*file, "filename"), &folder = field(*file, "directory");
    return folder.empty() || name.starts_with("/") ? name : folder + "/" + name;
}

}  // namespace

std::string source_line(const ir::Module &module, int location) {
    const ir::Metadata *at = find(module, std::to_string(location));
    const ir::Metadata *scope = at ? find(module, field(*at, "scope")) : nullptr;
    return scope ? path_of(module, *scope) + ":" + field(*at, "line") : "";
}

const ir::Metadata *DebugLines::node(const std::string &reference) const {
    return find(module_, reference);
}

// The function that a scope is in.
const ir::Metadata *DebugLines::subprogram(const std::string &scope) const {
    const ir::Metadata *at = node(scope);
    while (at && at->kind != "DISubprogram") at = node(field(*at, "scope"));
    return at;
}

int DebugLines::file_of(const std::string &scope) {
    const ir::Metadata *at = node(scope);
    if (!at) return 0;
    const std::string path = path_of(module_, *at);
    if (path.empty()) return 0;
    int &known = files_[path];
    if (!known) {
        file_list_.push_back(path);
        known = static_cast<int>(file_list_.size());
    }
    return known;
}

int DebugLines::name_of(const std::string &scope) {
    const ir::Metadata *at = subprogram(scope);
    const std::string name = !at                                 ? ""
                             : field(*at, "linkageName").empty() ? field(*at, "name")
                                                                 : field(*at, "linkageName");
    const auto [found, is_new] = names_.try_emplace(name, static_cast<int>(name_list_.size()));
    if (is_new) name_list_.push_back(name);
    return found->second;
}

std::string DebugLines::begin(int subprogram) {
    last_.clear(), last_calls_.clear();
    const ir::Metadata *at = node(std::to_string(subprogram));
    const int file = at ? file_of(std::to_string(subprogram)) : 0;
    return file ? format(".loc {} {} 0\n", file, field(*at, "line")) : "";
}

std::string DebugLines::lines(int location) {
    const ir::Metadata *at = node(std::to_string(location));
    if (!at || number(field(*at, "line")) <= 0) return "";
    // From the innermost outwards.
    std::vector<std::string> chain;
    while (at) {
        const int file = file_of(field(*at, "scope"));
        if (!file) return "";
        std::string line = format(".loc {} {} {}", file, field(*at, "line"),
                                  field(*at, "column").empty() ? "0" : field(*at, "column"));
        const ir::Metadata *caller = node(field(*at, "inlinedAt"));
        if (caller) {
            line += format(", function_name $L__info_string{}, inlined_at {} {} {}", name_of(field(*at, "scope")),
                           file_of(field(*caller, "scope")), field(*caller, "line"),
                           field(*caller, "column").empty() ? "0" : field(*caller, "column"));
        }
        chain.push_back(std::move(line));
        at = caller;
    }
    if (chain[0] == last_) return "";
    last_ = chain[0];
    std::string calls;
    for (size_t i = chain.size(); i-- > 1;) calls += chain[i] + "\n";
    const bool same = calls == last_calls_;
    last_calls_ = calls;
    return (same ? "" : calls) + chain[0] + "\n";
}

std::string DebugLines::files() const {
    std::string found;
    for (size_t i = 0; i < file_list_.size(); ++i) {
        std::string path;
        for (const char c : file_list_[i]) {
            if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
                path += c;
            else
                path += "\\" + digits(static_cast<unsigned char>(c), 3, 8);
        }
        found += format(".file {} \"{}\"\n", i + 1, path);
    }
    return found;
}

std::string DebugLines::strings() const {
    if (name_list_.empty()) return "";
    std::string found = ".section .debug_str\n{\n";
    for (size_t i = 0; i < name_list_.size(); ++i) {
        found += format("$L__info_string{}:\n", i);
        const std::string text = name_list_[i] + '\0';
        for (size_t at = 0; at < text.size(); ++at) {
            found += at % 40 ? "," : at ? "\n.b8 " : ".b8 ";
            found += std::to_string(static_cast<unsigned char>(text[at]));
        }
        found += "\n";
    }
    return found + "}\n";
}

}  // namespace compiler
