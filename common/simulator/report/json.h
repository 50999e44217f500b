#pragma once

#include <string>

#include "report/report.h"

namespace warpsim {

// One launch as a JSON object.
std::string launch_json(const LaunchReport &);

// `text` with quotes, escaped; bytes that are no UTF-8 become U+FFFD.
std::string json_string(const std::string &text);

}  // namespace warpsim
