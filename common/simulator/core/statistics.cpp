#include "core/statistics.h"

#include <map>
#include <tuple>
#include <utility>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"

namespace warpsim {
namespace {

bool begins_with(const std::string &text, const char *prefix) {
    return text.rfind(prefix, 0) == 0;
}

// Barriers of the block and the grid; not those of a warp.
bool is_block_barrier(const std::string &text) {
    return begins_with(text, "barrier") || (begins_with(text, "bar.") && !begins_with(text, "bar.warp"));
}

}  // namespace

const char *bulk_name(BulkKind kind) {
    static constexpr const char *kNames[] = {"load", "store", "reduce", "prefetch", "peer"};
    return kNames[size_t(kind)];
}

void summarize(const Program &program, const std::vector<OpStats> &totals, LaunchReport &report) {
    report.shared = {{"load", {}}, {"store", {}}, {"ldmatrix", {}}, {"cp_async", {}}};
    report.shared["cp_async"].ideal.reset();  // unknown, unless the op counts one
    report.global = {{"load", {}}, {"store", {}}};
    std::map<std::tuple<uint32_t, uint32_t, std::vector<CallSite>>, LineCount> lines;
    for (size_t i = 0; i < program.ops.size() && i < totals.size(); ++i) {
        const Op &op = program.ops[i];
        const OpStats &stats = totals[i];
        if (!stats.issued || op.flow == Flow::join || op.flow == Flow::jump) continue;
        const OpDebug &debug = program.debug[i];
        report.instructions += stats.issued;
        report.by_class[static_cast<size_t>(op.cls)] += stats.issued;
        report.divergent_branches += stats.divergent;
        if (op.cls == OpClass::barrier && is_block_barrier(debug.text)) report.barriers += stats.issued;
        if (const char *kind = access_kind(op.cls); kind && stats.shared_wavefronts) {
            SharedCount &count = report.shared[kind];
            count.wavefronts += stats.shared_wavefronts;
            if (count.ideal || stats.shared_ideal) count.ideal = count.ideal.value_or(0) + stats.shared_ideal;
        }
        if (const char *kind = access_kind(op.cls); kind && stats.global_sectors) {
            // What cp.async reads counts as loads, as a profiler has it.
            GlobalCount &count = report.global[op.cls == OpClass::async_copy ? "load" : kind];
            count.sectors += stats.global_sectors;
            count.ideal += stats.global_ideal;
            count.bytes += stats.global_bytes;
        }
        if (op.cls == OpClass::bulk_copy && stats.bulk_copies) {
            BulkCount &count = report.bulk[bulk_name(unpack<BulkForm>(op.extra).kind)];
            count.copies += stats.bulk_copies;
            count.bytes += stats.bulk_bytes;
        }
        if (op.cls == OpClass::tensor_copy && stats.bulk_copies) {
            TensorCount &count = report.tensor_copies[bulk_name(unpack<TensorForm>(op.extra).kind)];
            count.copies += stats.bulk_copies;
            count.bytes += stats.bulk_bytes;
            count.sectors += stats.tensor_sectors;
        }
        uint64_t wgmma_wavefronts = 0;
        if (op.flow == Flow::warpgroup && op.cls == OpClass::tensor) {
            constexpr uint64_t kWarps = 4, kRows = 64, kTileK = 32, kPass = 128;  // bytes of k, and of a wavefront
            const WgmmaForm form = unpack<WgmmaForm>(op.imm);
            WgmmaCount &count = report.wgmma[debug.text.substr(debug.text.find(".m64") + 1)];
            const uint64_t wgmma = stats.issued / kWarps, rows = form.n8 * 8u + (form.a_in_registers ? 0 : kRows);
            wgmma_wavefronts = wgmma * (rows * kTileK / kPass);
            count.count += wgmma;
            count.wavefronts += wgmma_wavefronts;
        }
        report.mbarrier_waits += stats.waits;
        report.mbarrier_waited += stats.waited;
        if (debug.source.line == 0) continue;
        const bool header = is_header(program, debug.source);
        LineCount &line = lines[{debug.source.file, debug.source.line,
                                 header ? calls_to(program, debug.source) : std::vector<CallSite>()}];
        line.instructions += stats.issued;
        line.shared_wavefronts += stats.shared_wavefronts;
        line.shared_ideal += stats.shared_ideal;
        line.global_sectors += stats.global_sectors;
        line.global_ideal += stats.global_ideal;
        line.bulk_bytes += stats.bulk_bytes;
        line.tensor_sectors += stats.tensor_sectors;
        line.mbarrier_waits += stats.waits;
        line.mbarrier_waited += stats.waited;
        line.wgmma_wavefronts += wgmma_wavefronts;
    }
    for (auto &[key, line] : lines) {
        line.file = file_name(program, {std::get<0>(key), std::get<1>(key)});
        line.line = std::get<1>(key);
        line.inlined = std::get<2>(key);
        report.lines.push_back(std::move(line));
    }
}

}  // namespace warpsim
