#pragma once

#include <string>

#include "report/report.h"

namespace warpsim {

// One launch as a JSON object.
std::string launch_json(const LaunchReport &);

}  // namespace warpsim
