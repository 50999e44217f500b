// Where in the source an instruction comes from: !DILocation to .file and .loc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir.h"

namespace compiler {

// "kernel.cu:12", with the path; "" where nothing is known. location: the number of a !DILocation.
std::string source_line(const ir::Module &, int location);

// Numbers files and names of functions as they occur.
class DebugLines {
  public:
    explicit DebugLines(const ir::Module &module) : module_(module) {}

    // The directives for a place, each a line: of code that was inlined the calls first, from the outermost. Empty: the
    // place is that of the instruction before. A function begins with `begin`.
    std::string lines(int location);
    std::string begin(int subprogram);

    std::string files() const;    // `.file` for each
    std::string strings() const;  // the section of the functions' names

  private:
    int file_of(const std::string &scope);
    int name_of(const std::string &scope);
    const ir::Metadata *node(const std::string &reference) const;
    const ir::Metadata *subprogram(const std::string &scope) const;

    const ir::Module &module_;
    std::map<std::string, int> files_, names_;
    std::vector<std::string> file_list_, name_list_;
    std::string last_, last_calls_;
};

}  // namespace compiler
