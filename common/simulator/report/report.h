// A launch's report as JSON and as text, and its trace as JSON (WARPSIM_TRACE).
#pragma once

#include <string>
#include <vector>

#include "core/statistics.h"

namespace warpsim {

std::string to_table(const LaunchReport &, unsigned most_lines);  // for people
std::string to_text(const HazardRecord &);                        // the message printed when a launch fails

// One launch as a JSON object.
std::string launch_json(const LaunchReport &);

std::string trace_json(const LaunchReport &);

}  // namespace warpsim
