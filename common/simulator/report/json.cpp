#include "report/json.h"
#include "core/names.h"

#include <cstdio>

namespace warpsim {
namespace {

// Bytes of the UTF-8 sequence at text[i], 0 where there is none.
unsigned utf8_length(const std::string &text, size_t i) {
    const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned first = byte(i);
    if (first < 0x80) return 1;
    const unsigned length = first >= 0xc2 && first < 0xe0   ? 2
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
    unsigned code = length == 2 ? first & 0x1f : length == 3 ? first & 0x0f : first & 0x07;
    for (unsigned k = 1; k < length; ++k) {
        if ((byte(i + k) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i + k) & 0x3f);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    return overlong || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ? 0 : length;
}

// Addresses of lanes that took no part are null.
void write_access(JsonWriter &w, const LaunchReport &report, const AccessRecord &access) {
    w.open('{').key("file").string(access.file).key("line").number(access.line);
    w.key("ptx_line").number(access.ptx_line);
    w.key("space").string(access.shared ? "shared" : "global").key("kind").string(access.kind);
    w.key("bytes").number(access.bytes);
    w.key("matrices").raw(access.matrices ? std::to_string(access.matrices) : "null");
    w.key("block").triple(report.accessed_block).key("warp").number(report.accessed_warp);
    w.key("lanes").number(access.lanes).key("addresses").open('[');
    for (unsigned i = 0; i < kLanes; ++i) {
        w.raw(access.lanes >> i & 1 ? std::to_string(access.addresses[i]) : "null");
    }
    w.close(']').key(access.shared ? "wavefronts" : "sectors").number(access.cost).key("ideal").number(access.ideal);
    w.close('}');
}

}  // namespace

std::string json_string(const std::string &text) {
    std::string result = "\"";
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        const unsigned length = utf8_length(text, i);
        if (length == 0) {
            result += "\\ufffd";
            ++i;
        } else if (length > 1) {
            result.append(text, i, length);
            i += length;
        } else {
            if (c == '"' || c == '\\') {
                result += '\\';
                result += c;
            } else if (c == '\n') {
                result += "\\n";
            } else if (c == '\t') {
                result += "\\t";
            } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                char escape[8];
                std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
                result += escape;
            } else {
                result += c;
            }
            ++i;
        }
    }
    return result + '"';
}

std::string launch_json(const LaunchReport &report) {
    JsonWriter w;
    w.open('{');
    w.key("kernel").string(report.kernel);
    w.key("grid").triple(report.grid);
    w.key("block").triple(report.block);
    w.key("shared_bytes").number(report.shared_bytes);
    w.key("instructions").open('{');
    w.key("total").number(report.instructions);
    w.key("by_class").open('{');
    for (size_t i = 0; i < report.by_class.size(); ++i) {
        if (report.by_class[i]) w.key(class_name(static_cast<OpClass>(i))).number(report.by_class[i]);
    }
    w.close('}').close('}');
    w.key("shared").open('{');
    for (const auto &[name, count] : report.shared) {
        w.key(name.c_str()).open('{').key("wavefronts").number(count.wavefronts);
        w.key("ideal").raw(count.ideal ? std::to_string(*count.ideal) : "null").close('}');
    }
    w.close('}');
    w.key("global").open('{');
    for (const auto &[name, count] : report.global) {
        w.key(name.c_str()).open('{').key("sectors").number(count.sectors);
        w.key("ideal").number(count.ideal).key("bytes").number(count.bytes).close('}');
    }
    w.close('}');
    w.key("barriers").number(report.barriers);
    w.key("divergent_branches").number(report.divergent_branches);
    w.key("error").string(report.error);
    w.key("hazards").open('[');
    for (const HazardRecord &hazard : report.hazards) {
        char address[24];
        std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(hazard.address));
        w.open('{').key("kind").string(hazard_name(hazard.kind)).key("file").string(hazard.file);
        w.key("line").number(hazard.line).key("block").triple(hazard.block).key("warp").number(hazard.warp);
        w.key("lane").raw(std::to_string(hazard.lane)).key("address").string(address);
        w.key("message").string(hazard.message).key("count").number(hazard.count).close('}');
    }
    w.close(']');
    w.key("lines").open('[');
    for (const LineCount &line : report.lines) {
        w.open('{').key("file").string(line.file).key("line").number(line.line);
        w.key("instructions").number(line.instructions);
        w.key("shared_wavefronts").number(line.shared_wavefronts).key("shared_ideal").number(line.shared_ideal);
        w.key("global_sectors").number(line.global_sectors).key("global_ideal").number(line.global_ideal).close('}');
    }
    w.close(']');
    if (!report.accesses.empty()) {
        w.key("accesses").open('[');
        for (const AccessRecord &access : report.accesses) write_access(w, report, access);
        w.close(']');
    }
    w.close('}');
    return w.take();
}

}  // namespace warpsim
