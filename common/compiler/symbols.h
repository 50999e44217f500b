// Names as PTX can have them.
#pragma once

#include <map>
#include <set>
#include <string>

namespace compiler {

class Symbols {
  public:
    // The same for the same name, another for another.
    const std::string &operator[](const std::string &name) const;

  private:
    mutable std::map<std::string, std::string> known_;
    mutable std::set<std::string> taken_;
};

}  // namespace compiler
