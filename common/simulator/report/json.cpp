#include <json_writer.h>
#include "report/report.h"

#include "core/names.h"
#include "core/text.h"

namespace warpsim {
namespace {

void write_calls(json::Writer &w, const std::vector<CallSite> &calls) {
    if (calls.empty()) return;
    w.key("inlined").open('[');
    for (const CallSite &call : calls) {
        w.open('{').key("file").string(call.file).key("line").number(call.line);
        w.key("function").string(call.function).close('}');
    }
    w.close(']');
}

// Addresses of lanes that took no part are null.
void write_access(json::Writer &w, const LaunchReport &report, const AccessRecord &access) {
    w.open('{').key("file").string(access.file).key("line").number(access.line);
    write_calls(w, access.inlined);
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

template <class T>
void write_list(json::Writer &w, const char *key, const std::vector<T> &values) {
    w.key(key).open('[');
    for (const T &value : values) w.raw(std::to_string(value));
    w.close(']');
}

// Addresses of rows outside of the tensor are null.
void write_box(json::Writer &w, const LaunchReport &report, const BoxRecord &box) {
    w.open('{').key("file").string(box.file).key("line").number(box.line).key("ptx_line").number(box.ptx_line);
    write_calls(w, box.inlined);
    w.key("kind").string(bulk_name(box.kind));
    w.key("block").triple(report.accessed_block).key("warp").number(report.accessed_warp).key("lane").number(box.lane);
    w.key("shared").number(box.shared).key("swizzle").number(box.swizzle).key("element").number(box.element);
    write_list(w, "coordinates", box.coordinates);
    write_list(w, "counts", box.counts);
    w.key("rows").open('[');
    for (const auto &row : box.rows) w.raw(row ? std::to_string(*row) : "null");
    w.close(']').key("sectors").number(box.sectors).close('}');
}

void write_hazards(json::Writer &w, const char *key, const std::vector<HazardRecord> &hazards) {
    w.key(key).open('[');
    for (const HazardRecord &hazard : hazards) {
        w.open('{').key("kind").string(hazard_name(hazard.kind)).key("file").string(hazard.file);
        w.key("line").number(hazard.line);
        write_calls(w, hazard.inlined);
        w.key("block").triple(hazard.block).key("warp").number(hazard.warp);
        w.key("lane").raw(std::to_string(hazard.lane)).key("address").string(hex(hazard.address));
        w.key("message").string(hazard.message).key("count").number(hazard.count).close('}');
    }
    w.close(']');
}

}  // namespace

std::string launch_json(const LaunchReport &report) {
    json::Writer w;
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
    w.key("bulk").open('{');
    for (const auto &[name, count] : report.bulk)
        w.key(name.c_str()).open('{').key("copies").number(count.copies).key("bytes").number(count.bytes).close('}');
    w.close('}');
    w.key("tensor_copies").open('{');
    for (const auto &[name, count] : report.tensor_copies) {
        w.key(name.c_str()).open('{').key("copies").number(count.copies).key("bytes").number(count.bytes);
        w.key("sectors").number(count.sectors).close('}');
    }
    w.close('}');
    w.key("wgmma").open('{');
    for (const auto &[name, count] : report.wgmma)
        w.key(name.c_str())
            .open('{')
            .key("count")
            .number(count.count)
            .key("wavefronts")
            .number(count.wavefronts)
            .close('}');
    w.close('}');
    w.key("mbarriers").open('{').key("waits").number(report.mbarrier_waits);
    w.key("waited").number(report.mbarrier_waited).close('}');
    w.key("barriers").number(report.barriers);
    w.key("divergent_branches").number(report.divergent_branches);
    w.key("order").open('{').key("tensor_during_copies").number(report.order.tensor_during_copies);
    w.key("ldmatrix_in_a_row").number(report.order.ldmatrix_in_a_row);
    w.key("first_block").number(report.first_block).key("last_block").number(report.last_block).close('}');
    w.key("error").string(report.error);
    write_hazards(w, "hazards", report.hazards);
    write_hazards(w, "notes", report.notes);
    w.key("lines").open('[');
    for (const LineCount &line : report.lines) {
        w.open('{').key("file").string(line.file).key("line").number(line.line);
        write_calls(w, line.inlined);
        w.key("instructions").number(line.instructions);
        w.key("shared_wavefronts").number(line.shared_wavefronts).key("shared_ideal").number(line.shared_ideal);
        w.key("global_sectors").number(line.global_sectors).key("global_ideal").number(line.global_ideal);
        if (line.bulk_bytes) w.key("bulk_bytes").number(line.bulk_bytes);
        if (line.tensor_sectors) w.key("tensor_sectors").number(line.tensor_sectors);
        if (line.mbarrier_waits) w.key("mbarrier_waits").number(line.mbarrier_waits);
        if (line.mbarrier_waited) w.key("mbarrier_waited").number(line.mbarrier_waited);
        if (line.wgmma_wavefronts) w.key("wgmma_wavefronts").number(line.wgmma_wavefronts);
        w.close('}');
    }
    w.close(']');
    if (!report.accesses.empty()) {
        w.key("accesses").open('[');
        for (const AccessRecord &access : report.accesses) write_access(w, report, access);
        w.close(']');
    }
    if (!report.boxes.empty()) {
        w.key("boxes").open('[');
        for (const BoxRecord &box : report.boxes) write_box(w, report, box);
        w.close(']');
    }
    w.close('}');
    return w.take();
}

}  // namespace warpsim
