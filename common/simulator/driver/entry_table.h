// The functions of the driver by name.
#pragma once

namespace warpsim::driver {

struct Entry {
    void *function = nullptr;  // null: none is that old
    bool known = false;        // whether there is any function of that name
};

// The newest function called `name` that CUDA `version` has; for a per-thread default stream where `per_thread`, and
// there is one.
Entry find_entry(const char *name, unsigned version, bool per_thread);

}  // namespace warpsim::driver
