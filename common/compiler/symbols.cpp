#include "symbols.h"

namespace compiler {

const std::string &Symbols::operator[](const std::string &name) const {
    std::string &found = known_[name];
    if (!found.empty()) return found;
    for (const char c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        found += plain ? c : '$';
    }
    if (found.empty() || (found[0] >= '0' && found[0] <= '9') || found == "_") found.insert(0, "$");
    while (!taken_.insert(found).second) found += "$";
    return found;
}

}  // namespace compiler
