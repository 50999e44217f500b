#include "machine.h"

#include <charconv>

namespace compiler::machine {

Operation operation(std::string text) {
    Operation found;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] != kUse && text[at] != kDefinition) continue;
        uint32_t number = 0;
        std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
        (text[at] == kUse ? found.used : found.defined).push_back(number);
    }
    found.text = std::move(text);
    return found;
}

}  // namespace compiler::machine
