#include "exec/access_log.h"
#include "core/names.h"

#include "core/program.h"

namespace warpsim {
AccessLog::AccessLog(const Program &program, uint64_t most)
    : program_(program), most_(most), shared_seen_(program.ops.size()), global_seen_(program.ops.size()) {}

AccessRecord *AccessLog::add(const Op &op, unsigned bytes, uint32_t exec) {
    const OpDebug &debug = program_.debug[op.index];
    AccessRecord &record = records_.emplace_back();
    record.file = file_name(program_, debug.source);
    record.line = debug.source.line;
    if (is_header(program_, debug.source)) record.inlined = calls_to(program_, debug.source);
    record.ptx_line = debug.ptx_line;
    record.kind = access_kind(op.cls);
    record.bytes = bytes;
    record.lanes = exec;
    return &record;
}

void AccessLog::shared(const Op &op, const uint32_t *offset, unsigned bytes, uint32_t exec, SharedCost cost,
                       unsigned matrices) {
    if (shared_seen_[op.index]++ >= most_) return;
    AccessRecord *record = add(op, bytes, exec);
    record->shared = true;
    record->matrices = matrices;
    for (unsigned i = 0; i < kLanes; ++i) record->addresses[i] = (exec >> i & 1) ? offset[i] : 0;
    record->cost = cost.wavefronts;
    record->ideal = cost.ideal;
}

void AccessLog::global(const Op &op, const uint64_t *address, unsigned bytes, uint32_t exec, GlobalCost cost) {
    if (global_seen_[op.index]++ >= most_) return;
    AccessRecord *record = add(op, bytes, exec);
    for (unsigned i = 0; i < kLanes; ++i) record->addresses[i] = (exec >> i & 1) ? address[i] : 0;
    record->cost = cost.sectors;
    record->ideal = cost.ideal;
}

BoxRecord *AccessLog::box(const Op &op, unsigned lane) {
    if (shared_seen_[op.index]++ >= most_) return nullptr;
    const OpDebug &debug = program_.debug[op.index];
    BoxRecord &record = boxes_.emplace_back();
    record.file = file_name(program_, debug.source);
    record.line = debug.source.line;
    if (is_header(program_, debug.source)) record.inlined = calls_to(program_, debug.source);
    record.ptx_line = debug.ptx_line;
    record.lane = lane;
    return &record;
}

}  // namespace warpsim
