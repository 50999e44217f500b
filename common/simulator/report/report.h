// A launch's report as JSON and as text.
#pragma once

#include <string>
#include <vector>

#include "core/statistics.h"

namespace warpsim {

std::string to_table(const LaunchReport &, unsigned most_lines);  // for people
std::string to_text(const HazardRecord &);                        // the message printed when a launch fails

}  // namespace warpsim
