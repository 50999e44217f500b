#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "core/options.h"

namespace warpsim {
namespace {

[[noreturn]] void refuse(const char *name, const std::string &value, const std::string &wanted) {
    throw std::runtime_error(std::string(name) + "=" + value + ": must be " + wanted);
}

// An empty variable counts as one that is not set.
bool get(const char *name, std::string &value) {
    const char *text = std::getenv(name);
    value = text ? text : "";
    return !value.empty();
}

uint64_t whole_number(const char *name, const std::string &value, const char *end, uint64_t most, const char *wanted) {
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || rest != end || number > most) refuse(name, value, wanted);
    return number;
}

uint64_t count(const char *name, uint64_t otherwise, uint64_t most, const char *wanted) {
    std::string value;
    if (!get(name, value)) return otherwise;
    return whole_number(name, value, value.data() + value.size(), most, wanted);
}

// "1500000", "64K", "2G": powers of 1024.
uint64_t bytes(const char *name) {
    constexpr const char *kWanted = "a number of bytes, also with K, M, G or T behind it";
    std::string value;
    if (!get(name, value)) return 0;
    const char last = value.back();
    const char *const units = "KMGT", *unit = std::strchr(units, last & ~0x20);
    const bool has_unit = last >= 'A' && unit;
    const unsigned shift = has_unit ? 10 * static_cast<unsigned>(unit - units + 1) : 0;
    const char *end = value.data() + value.size() - has_unit;
    return whole_number(name, value, end, UINT64_MAX >> shift, kWanted) << shift;
}

// "x,y,z"
void block(const char *name, const std::string &value, uint32_t (&result)[3]) {
    constexpr const char *kWanted = "a block's place in the grid, x,y,z, e.g. 0,0,0";
    size_t begin = 0;
    for (unsigned i = 0; i < 3; ++i) {
        const size_t end = i < 2 ? value.find(',', begin) : value.size();
        if (end == std::string::npos || begin > value.size()) refuse(name, value, kWanted);
        const std::string part = value.substr(begin, end - begin);
        result[i] = static_cast<uint32_t>(whole_number(name, part, part.data() + part.size(), UINT32_MAX, kWanted));
        begin = end + 1;
    }
}

// "7", a seed, or "last:2", a stream's number.
void schedule(const char *name, Options &options) {
    constexpr const char *kWanted = "a seed, 0 for the default order, or last:K for stream K as late as possible";
    constexpr std::string_view kLast = "last:";
    std::string value;
    if (!get(name, value)) return;
    const bool last = value.starts_with(kLast);
    const char *const end = value.data() + value.size();
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(value.data() + (last ? kLast.size() : 0), end, number);
    if (error != std::errc() || rest != end || (last && number > INT64_MAX)) refuse(name, value, kWanted);
    if (last) {
        options.last_stream = static_cast<int64_t>(number);
    } else {
        options.schedule_seed = number;
    }
}

bool flag(const char *name) {
    std::string value;
    if (!get(name, value) || value == "0") return false;
    if (value != "1") refuse(name, value, "0 or 1");
    return true;
}

}  // namespace

Options Options::from_environment() {
    Options options;
    options.threads = static_cast<unsigned>(
        count("WARPSIM_THREADS", 0, 1024, "a number of host threads from 1 to 1024, or 0 for all"));
    schedule("WARPSIM_SCHEDULE", options);
    options.max_instructions =
        count("WARPSIM_MAX_INSTRUCTIONS", 0, UINT64_MAX, "a number of warp instructions, or 0 for no limit");
    options.max_memory = bytes("WARPSIM_MAX_MEMORY");
    options.print_table = flag("WARPSIM_TABLE");
    options.distrust_memory = flag("WARPSIM_DISTRUST_MEMORY");
    std::string value;
    if (get("WARPSIM_HAZARDS", value)) {
        if (value == "off") {
            options.hazards = false;
        } else if (value == "warn") {
            options.hazards_warn = true;
        } else if (value == "strict") {
            options.hazards_strict = true;
        } else if (value != "on") {
            refuse("WARPSIM_HAZARDS", value, "on, strict, warn or off");
        }
    }
    if (get("WARPSIM_TIMEOUT_S", value)) {
        char *end = nullptr;
        options.timeout_s = std::strtod(value.c_str(), &end);
        if (*end || !std::isfinite(options.timeout_s) || options.timeout_s < 0) {
            refuse("WARPSIM_TIMEOUT_S", value, "a number of seconds, or 0 for no limit");
        }
    }
    if (get("WARPSIM_DEVICE", value)) options.device = value;
    options.multiprocessors = static_cast<unsigned>(count("WARPSIM_MULTIPROCESSORS", 0, 1024,
                                                          "a number of multiprocessors from 1 to 1024, or 0 for as "
                                                          "many as the device has"));
    options.devices = static_cast<unsigned>(
        count("WARPSIM_DEVICES", 1, kMostDevices, "a number of devices from 1 to 16, or nothing for one"));
    if (!options.devices) refuse("WARPSIM_DEVICES", "0", "a number of devices from 1 to 16");
    get("WARPSIM_WRAPPERS", options.wrappers);
    get("WARPSIM_REPORT", options.report_path);
    get("WARPSIM_TRACE", options.trace_path);
    options.trace_blocks =
        static_cast<unsigned>(count("WARPSIM_TRACE_BLOCKS", 1, 32, "a number of blocks from 0 to 32"));
    options.accesses = count("WARPSIM_ACCESSES", 0, 1000, "a number of executions up to 1000, or 0 for none");
    options.accesses_warp =
        static_cast<uint32_t>(count("WARPSIM_ACCESSES_WARP", 0, 31, "a warp's number from 0 to 31"));
    if (get("WARPSIM_ACCESSES_BLOCK", value)) block("WARPSIM_ACCESSES_BLOCK", value, options.accesses_block);
    return options;
}

}  // namespace warpsim
