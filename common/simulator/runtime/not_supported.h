#pragma once

namespace warpsim::rt {

// Says that the API function `name` is not there, and records and returns cudaErrorNotSupported.
int not_supported(const char *name);

}  // namespace warpsim::rt
