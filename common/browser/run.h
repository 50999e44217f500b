// One run of a kernel on the simulator without a host program: from PTX and a request to a verdict and the report.
#pragma once

#include <string>
#include <string_view>

namespace browser {

// Once in a process: the simulator reads its settings at its first use. Never throws. The result, as JSON:
//
//     status    "right", "wrong" (beyond its bounds), "failed" (the PTX, the launch, a hazard, a budget), "refused";
//               "ran" where the tensors were given: the caller compares
//     message   one line about it
//     passed, frobenius, worst, log_sum_exp_worst     as the runners print them; where a result could be compared
//     report    what WARPSIM_REPORT would hold; null where the simulator did not come to life
//     trace     what WARPSIM_TRACE would hold, where the request sets it
std::string run(std::string_view ptx, std::string_view request);

}  // namespace browser

// The same for C and JavaScript; the text is valid until the process ends.
extern "C" const char *browser_run(const char *ptx, const char *request);
