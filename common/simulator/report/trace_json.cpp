#include "report/report.h"

#include <json_writer.h>

#include <map>

#include "core/names.h"

namespace warpsim {
namespace {

const char *kind_name(TraceEvent::Kind kind) {
    static constexpr const char *kNames[] = {"run",          "arrive",        "sync", "wait",
                                             "arrive_phase", "arrive_copies", "copy", "warpgroup"};
    return kNames[size_t(kind)];
}

void write_event(json::Writer &w, const TraceEvent &event) {
    using Kind = TraceEvent::Kind;
    w.open('[').string(kind_name(event.kind));
    if (event.kind == Kind::run) {
        w.number(event.which).close(']');
        return;
    }
    w.number(event.op);
    if (event.kind != Kind::warpgroup) w.number(event.which).integer(event.phase);
    if (event.kind >= Kind::arrive_phase && event.kind <= Kind::copy) w.number(event.count).number(event.bytes);
    w.close(']');
}

void write_block(json::Writer &w, const TracedBlock &block) {
    w.open('{').key("block").triple(block.block).key("cut").boolean(block.cut).key("pieces").open('[');
    for (const TracePiece &piece : block.pieces) {
        w.open('[').number(piece.first).number(piece.last).open('[');
        for (const TraceCost &cost : piece.costs) {
            w.open('[').number(cost.op).number(cost.wavefronts).number(cost.sectors).number(cost.bytes).close(']');
        }
        w.close(']').close(']');
    }
    w.close(']').key("mbarriers").open('[');
    for (const TracedMbarrier &m : block.mbarriers)
        w.open('[').number(m.op).number(m.address).number(m.expected).close(']');
    w.close(']').key("warps").open('[');
    for (const auto &warp : block.warps) {
        w.open('[');
        for (const TraceEvent &event : warp) write_event(w, event);
        w.close(']');
    }
    w.close(']').close('}');
}

}  // namespace

std::string trace_json(const LaunchReport &report) {
    json::Writer w;
    std::map<std::string, size_t> files;
    for (const TracedOp &op : report.traced_ops) {
        files.try_emplace(op.file, files.size());
        for (const auto &[file, line] : op.calls) files.try_emplace(file, files.size());
    }
    std::vector<std::string> names(files.size());
    for (const auto &[name, number] : files) names[number] = name;
    w.open('{').key("kernel").string(report.kernel).key("grid").triple(report.grid).key("block").triple(report.block);
    w.key("error").string(report.error).key("files").open('[');
    for (const std::string &name : names) w.string(name);
    w.close(']').key("ops").open('[');
    for (const TracedOp &op : report.traced_ops) {
        w.open('[').number(op.op).string(class_name(op.cls)).string(op.text).number(files[op.file]).number(op.line);
        w.integer(op.imm);
        if (!op.calls.empty()) {
            w.open('[');
            for (const auto &[file, line] : op.calls) w.open('[').number(files[file]).number(line).close(']');
            w.close(']');
        }
        w.close(']');
    }
    w.close(']').key("traced").open('[');
    for (const TracedBlock &block : report.traced) write_block(w, block);
    w.close(']').close('}');
    return w.take();
}

}  // namespace warpsim
