#include "definedness/definedness.h"

#include <algorithm>
#include <string>

#include "core/names.h"
#include "core/program.h"
#include "definedness/linear.h"
#include "hazard/shared_shadow.h"

namespace warpsim {
namespace {

std::string thread_text(const Warp &w, unsigned lane) {
    return "thread " + std::to_string(w.id * kLanes + lane) + " (warp " + std::to_string(w.id) + ", lane " +
           std::to_string(lane) + ")";
}

std::string use_text(const Program &program, const Op &op, Use use) {
    const std::string &text = program.debug[op.index].text;
    switch (use) {
        case Use::branch:
            return "decides a branch";
        case Use::guard:
            return "decides whether " + text + " is executed";
        case Use::address:
            return "is part of an address of " + text;
        case Use::lanes:
            return "decides which lanes " + text + " concerns";
        case Use::barrier:
            return "goes into " + text;
        case Use::global_store:
            return "is stored to global memory";
        case Use::atomic:
            return "goes into an atomic operation on global memory";
        case Use::call:
            return "is an argument of a call";
        case Use::input:
            return "is used by " + text;
    }
    return "";
}

}  // namespace

void Definedness::start_block(bool distrust_memory) {
    distrust_memory_ = distrust_memory;
    origins_.clear();
    known_.clear();
    said_.clear();
    waiting_.clear();
}

uint32_t Definedness::origin(Source source, Warp &w, const Op &op, unsigned lane, uint64_t address) {
    const uint64_t key = ((uint64_t(op.index) << 9 | w.agent) << 5 | lane) << 2 | uint64_t(source);
    std::vector<uint32_t> &same = known_[key];
    for (uint32_t id : same)
        if (origins_[id - 1].address == address && origins_[id - 1].shadow == w.block->shadow) return id;
    constexpr size_t kMostAddresses = 64;  // of one lane at one op: the rest go by the name of the first
    if (same.size() == kMostAddresses) return same[0];
    if (origins_.size() == kMostOrigins) return kMostOrigins;
    origins_.push_back({source, &w, &op, lane, address, w.block->shadow});
    same.push_back(uint32_t(origins_.size()));
    return same.back();
}

void Definedness::matters(Warp &w, const Op &op, unsigned lane, uint32_t from, Use use) {
    const uint32_t id = origin_id(from);
    const Origin origin = id == kNoOrigin ? Origin{Source::variable, &w, &op, lane, 0, nullptr} : origins_[id - 1];
    // Thrust's set operations compare elements behind the end that no register brought, to no effect.
    // Lanes whose result is dropped compare what no lane gave them, to no effect either.
    if ((origin.source == Source::variable || origin.source == Source::lane) && use == Use::branch) return;
    if (!said_.insert({origin.op->index, op.index, use}).second) return;
    const Effect effect{&w, &op, lane, origin, use};
    // What goes on with such a value would be caught for another reason: it does not wait.
    const bool at_once = use == Use::address || use == Use::lanes || use == Use::barrier;
    if (origin.source == Source::shared && !at_once &&
        origin.shadow->early_read(uint32_t(origin.address)) != SharedShadow::EarlyReadState::settled) {
        waiting_.push_back(effect);
    } else {
        report(effect);
    }
}

void Definedness::finish() {
    std::vector<Effect> left;
    left.swap(waiting_);
    std::stable_sort(left.begin(), left.end(), [](const Effect &a, const Effect &b) {
        return std::tie(a.origin.op->index, a.op->index) < std::tie(b.origin.op->index, b.op->index);
    });
    for (const Effect &effect : left) {
        if (effect.origin.shadow->cut_short()) continue;
        const auto state = effect.origin.shadow->early_read(uint32_t(effect.origin.address));
        if (state != SharedShadow::EarlyReadState::raced) report(effect);
    }
}

void Definedness::report(const Effect &effect) {
    const Origin &from = effect.origin;
    const Program &program = *effect.warp->block->program;
    const bool other = from.warp != effect.warp || from.lane != effect.lane;
    const bool shared = from.source == Source::shared;
    const std::string effect_text = " " + use_text(program, *effect.op, effect.use) + " at " +
                                    where(program, effect.op->index) +
                                    (other ? " in " + thread_text(*effect.warp, effect.lane) : "");
    if (from.source == Source::lane) {
        return report_hazard(*from.warp, *from.op, HazardKind::missing_lanes, int(from.lane), 0,
                             instruction_at(program, from.op->index) + " by " + thread_text(*from.warp, from.lane) +
                                 " reads lane " + std::to_string(from.address) +
                                 ", which takes no part: the membermask does not name it, or it has exited or does not "
                                 "exist. What comes of that is undefined, and" +
                                 effect_text);
    }
    const std::string what = shared                         ? "shared memory that no thread has written"
                             : from.source == Source::local ? "a local variable that nothing has written"
                                                            : "a variable that nothing has written";
    report_hazard(*from.warp, *from.op, shared ? HazardKind::uninitialized_shared : HazardKind::uninitialized_variable,
                  int(from.lane), from.address,
                  "read at " + where(program, from.op->index) + " by " + thread_text(*from.warp, from.lane) + " of " +
                      what + ": its value" + effect_text);
}

}  // namespace warpsim
