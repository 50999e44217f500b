// Which shared variable an address leads into, as the program computes it: the variable's own address, with offsets
// added. An access is then held to that variable's bounds, not only to the block's (machine/addresses.h).
//
// A register may have one value or another: it points into a variable only if all instructions that write it say so,
// and say the same one. Differences of two variables' addresses, and what logic instructions make of an address, point
// into none that is known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptx/ast.h"

namespace warpsim {

class SharedPointers {
  public:
    // variables: by name, the number of each shared variable that the kernel has.
    void run(const ptx::Function &, const std::map<std::string, uint32_t> &variables);
    // Of the base of an address: the variable's number; kNone: a number like others, or not known, or run() was not
    // called.
    uint32_t variable(const ptx::Operand &) const;

    static constexpr uint32_t kNone = 0xffffffffu;

  private:
    uint32_t value(const ptx::Operand &) const;
    uint32_t result(const ptx::Instruction &) const;

    const std::map<std::string, uint32_t> *variables_ = nullptr;
    std::vector<uint32_t> into_;  // by register
};

}  // namespace warpsim
