// Names of a function: what a name means inside nested { } scopes, where inner declarations hide outer ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warpsim::ptx {

class Scopes {
  public:
    struct Entry {
        uint32_t depth;  // of the scope that declares it; the outermost is 1
        uint32_t index;  // the caller's
    };

    void open() { declared_.emplace_back(); }
    void close() {
        for (std::string_view name : declared_.back()) names_[name].pop_back();
        declared_.pop_back();
    }
    uint32_t depth() const { return static_cast<uint32_t>(declared_.size()); }

    // False if the innermost scope has the name already.
    bool declare(std::string_view name, uint32_t index) {
        std::vector<Entry> &entries = names_[name];
        if (!entries.empty() && entries.back().depth == depth()) return false;
        entries.push_back({depth(), index});
        declared_.back().push_back(name);
        return true;
    }
    // The innermost meaning of a name; nullptr if it has none.
    const Entry *find(std::string_view name) const {
        const auto found = names_.find(name);
        return found == names_.end() || found->second.empty() ? nullptr : &found->second.back();
    }

  private:
    std::unordered_map<std::string_view, std::vector<Entry>> names_;
    std::vector<std::vector<std::string_view>> declared_;
};

}  // namespace warpsim::ptx
