// The cases of this program: CASE(name) { ... } defines one, and the test runs each in a process of its own.
#pragma once

#include <map>
#include <string>

#include "../driver.h"

using Case = void (*)();

inline std::map<std::string, Case> &cases() {
    static std::map<std::string, Case> by_name;
    return by_name;
}

#define CASE(name)                                                         \
    void name();                                                           \
    const bool registered_##name = cases().emplace(#name, &(name)).second; \
    void name()
// The test sets WARPSIM_DEVICES=2 for these.
#define CASE_OF_TWO_DEVICES(name) CASE(name)
