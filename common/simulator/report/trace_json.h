// A launch's trace as JSON: WARPSIM_TRACE.
#pragma once

#include <string>

#include "core/statistics.h"

namespace warpsim {

std::string trace_json(const LaunchReport &);

}  // namespace warpsim
