// The interpreter's inner loop.
#include <algorithm>

#include "machine/cluster.h"
#include "machine/context.h"
#include "machine/tracking.h"
#include "scheduler/standstill.h"
#include "scheduler/turns.h"

namespace warpsim {

namespace {

// A fragment that polled so often lets the other fragments of its warp run: one of them may hold the lock.
constexpr uint32_t kMostPolls = 32;
// One that ran so long does too, whatever it does.
constexpr uint64_t kMostInstructions = 1'000'000;
// In its block's turn a warp goes on for so many instructions behind each ordered op: another one comes soon, often.
constexpr int64_t kBehindOrdered = 64;
// A poll that sees the same for so many times, one after the other, in the block's turn is in vain.
constexpr unsigned kVainPolls = 2;

uint32_t guarded_lanes(const Warp &w, const Op &op, uint32_t mask) {
    return op.guard == kNoSlot ? mask : mask & (w.predicate(op.guard) ^ op.guard_xor);
}

// An ordered op of lanes that other blocks can see, while it is not the block's turn.
[[gnu::noinline]] bool waits_for_turn(const WarpContext &w, const Op &op, uint32_t lanes) {
    return lanes && !w.owner->has_turn && meets_other_blocks(w, op, lanes);
}

// Executes an op that is no part of a straight run, by `lanes` of the fragment's `mask`.
void run_single(WarpContext &w, const Op &op, uint32_t mask, uint32_t lanes) {
    if (w.undefined) [[unlikely]]
        return run_tracked(w, op, mask);
    if (op.guard != kNoSlot) ++w.stats[op.index].issued;
    w.exec = lanes;
    op.fn(w, op);
    w.exec = mask;
}

// Executes an ordered op. True: the fragment polls, and others go first.
[[gnu::noinline]] bool run_ordered(WarpContext &w, Fragment &f, const Op &op, uint32_t mask, uint32_t lanes) {
    if (!w.owner->has_turn) {
        run_single(w, op, mask, lanes);
        return op.dst != kNoSlot && ++f.polls >= kMostPolls;
    }
    // A poll that brings the same lanes the same as before, at the same op.
    LastPoll &last = w.last_poll;
    const bool again = op.dst != kNoSlot && last.op == &op && last.lanes == lanes;
    std::byte old[kLanes * 4];
    if (again) std::memcpy(old, w.regs + op.dst, sizeof old);
    run_single(w, op, mask, lanes);
    const bool in_vain = again && std::memcmp(old, w.regs + op.dst, sizeof old) == 0;
    last = {&op, lanes, in_vain ? last.in_vain + 1 : 0};
    return (op.dst != kNoSlot && ++f.polls >= kMostPolls) || last.in_vain >= kVainPolls;
}

// Takes back what the run's counter will credit to ops behind the one that ended the launch.
void uncount_rest(OpStats *stats, const Op *ops, const Op *op) {
    for (++op; op->flow == Flow::straight || op->flow == Flow::guarded; ++op) {
        if (op->flow == Flow::straight) --stats[op - ops].issued;
    }
    if (op->guard == kNoSlot || op->flow == Flow::branch) --stats[op - ops].issued;
}

// Other fragments of the warp that could run.
bool others_ready(const WarpContext &w, const Fragment &f) {
    for (uint32_t i = 0; i < w.count; ++i) {
        if (&w.fragments[i] != &f && w.fragments[i].wait == Wait::nothing) return true;
    }
    return false;
}

// Lanes whose index chose the same target go on as one fragment each. The first group's stays in f.
void split_indirect(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    const Program &program = *w.block->program;
    const uint32_t *index = w.lanes<uint32_t>(op.a);
    Frame *const frame = f.frame;
    const uint32_t rest = f.mask & ~lanes;
    f.mask = 0;
    for (uint32_t left = lanes; left;) {
        const unsigned first = unsigned(__builtin_ctz(left));
        if (index[first] >= op.list_count) {
            report_hazard(w, op, HazardKind::illegal_instruction, int(first), 0,
                          "brx.idx with index " + std::to_string(index[first]) + " of a table with " +
                              std::to_string(op.list_count) + " targets");
            throw LaunchAborted{};
        }
        uint32_t group = 0;
        const uint32_t target = program.operand_list[op.list + index[first]];
        for (unsigned lane = first; lane < kLanes; ++lane) {
            if ((left >> lane & 1) && index[lane] < op.list_count &&
                program.operand_list[op.list + index[lane]] == target) {
                group |= 1u << lane;
            }
        }
        left &= ~group;
        if (f.mask) {
            add_fragment(w, target, group, frame);
        } else {
            f.mask = group;
            f.pc = target;
        }
    }
    if (rest) add_fragment(w, op.index + 1, rest, frame);
}

// A call by `lanes` of f. Through a pointer, lanes with other callees stay at the op and call when it is their turn.
void call(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    const Program &program = *w.block->program;
    uint32_t function = op.target;
    Frame *const frame = f.frame;
    if (op.a != kNoSlot) {
        const uint64_t *handle = w.lanes<uint64_t>(op.a);
        const unsigned first = unsigned(__builtin_ctz(lanes));
        uint32_t group = 0;
        for (unsigned lane = first; lane < kLanes; ++lane) {
            if ((lanes >> lane & 1) && handle[lane] == handle[first]) group |= 1u << lane;
        }
        const auto found = program.by_handle.find(handle[first]);
        const bool fits = found != program.by_handle.end() && found->second != 0 &&
                          program.functions[found->second].parameters.size() == op.list_count;
        if (!fits) {
            report_hazard(w, op, HazardKind::illegal_instruction, int(first), handle[first],
                          "a call through a pointer that is no function's address");
            throw LaunchAborted{};
        }
        function = found->second;
        if (lanes & ~group) {
            add_fragment(w, op.index, lanes & ~group, frame);
            f.mask &= ~(lanes & ~group);
            lanes = group;
        }
    }
    if (f.mask & ~lanes) add_fragment(w, op.index + 1, f.mask & ~lanes, frame);
    f.mask = lanes;
    f.frame = enter_function(w, op, function, lanes, frame);
    f.pc = f.frame->function->entry;
}

// What an op does to others is looked at only where the warp is watched.
template <bool kWatched>
auto look([[maybe_unused]] Watch *watch, [[maybe_unused]] const WarpContext &w, [[maybe_unused]] const Op &op,
          [[maybe_unused]] uint32_t mask) {
    if constexpr (kWatched) {
        return Watch::Look(*watch, w, op, guarded_lanes(w, op, mask));
    } else {
        return 0;
    }
}

template <bool kWatched>
Progress run(WarpContext &w, uint64_t slice, [[maybe_unused]] Watch *watch) {
    const Program &program = *w.block->program;
    const Op *const ops = program.ops.data();
    OpStats *const stats = w.stats;
    uint64_t &now = w.owner->now;
    uint64_t *const runs = w.worker->runs.data();
    int64_t budget = int64_t(slice);
    int64_t settled = budget;  // the budget when `now` was last brought up to date
    const auto settle = [&](Fragment &f) {
        now += uint64_t(settled - budget);
        f.executed += uint64_t(settled - budget);
        settled = budget;
    };

    for (;;) {  // one fragment after the other
        Fragment *f = pick_fragment(w);
        if (!f) {
            if (!w.count) return Progress::done;
            bool yielded = false;
            for (uint32_t i = 0; i < w.count; ++i) {
                Fragment &other = w.fragments[i];
                yielded = yielded || (other.yielded && other.wait == Wait::nothing);
                other.yielded = false;
            }
            return yielded ? Progress::spinning : Progress::blocked;
        }
        use_frame(w, *f->frame);
        uint32_t mask = f->mask;
        uint32_t limit = w.count > 1 ? limit_of(w, *f) : 0xffffffffu;
        w.exec = mask;
        const Op *op = ops + f->pc;

        for (;;) {  // one run of straight-line ops and the op that ends it
            const Op *const start = op;
            ++runs[start - ops];
            try {
                try {
                    while (!w.undefined) {
                        while (op->flow == Flow::straight) {
                            [[maybe_unused]] const auto looked = look<kWatched>(watch, w, *op, mask);
                            op->fn(w, *op);
                            ++op;
                        }
                        if (op->flow != Flow::guarded) break;
                        const uint32_t lanes = mask & (w.predicate(op->guard) ^ op->guard_xor);
                        if (lanes) {
                            [[maybe_unused]] const auto looked = look<kWatched>(watch, w, *op, mask);
                            w.exec = lanes;
                            ++stats[op - ops].issued;
                            op->fn(w, *op);
                            w.exec = mask;
                        }
                        ++op;
                    }
                } catch (const TrackingBegan &) {
                    w.exec = mask;
                    ++op;
                }
                if (w.undefined) [[unlikely]] {
                    for (; op->flow == Flow::straight || op->flow == Flow::guarded; ++op) {
                        [[maybe_unused]] const auto looked = look<kWatched>(watch, w, *op, mask);
                        run_tracked(w, *op, mask);
                    }
                    check_tracked(w, *op, mask);
                }
            } catch (const LaunchAborted &) {
                uncount_rest(stats, ops, op);
                throw;
            }
            budget -= op - start + 1;
            if (w.trace) [[unlikely]]
                w.trace->run(w, uint32_t(start - ops), uint32_t(op - ops));

            [[maybe_unused]] const auto looked = look<kWatched>(watch, w, *op, mask);
            switch (op->flow) {
                case Flow::branch: {
                    const uint32_t taken = guarded_lanes(w, *op, mask);
                    if (taken == mask) {
                        op = ops + op->target;
                    } else if (!taken) {
                        ++op;
                    } else {
                        ++stats[op - ops].divergent;
                        add_fragment(w, op->target, taken, f->frame);
                        f->mask = mask & ~taken;
                        f->pc = uint32_t(op - ops) + 1;
                        goto next_fragment;
                    }
                    break;
                }
                case Flow::join:
                    ++op;
                    break;
                case Flow::jump:
                    op = ops + op->target;
                    break;
                case Flow::ordered: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (waits_for_turn(w, *op, lanes)) {
                        // It comes again when it is the block's turn: it does not count yet.
                        if (op->guard == kNoSlot) --stats[op - ops].issued;
                        ++budget;
                        f->pc = uint32_t(op - ops);
                        settle(*f);
                        return Progress::turn;
                    }
                    settle(*f);
                    if (lanes) {
                        const bool polls = run_ordered(w, *f, *op, mask, lanes);
                        BlockContext &block = *w.owner;
                        if (block.has_turn && block.turn_ops) {
                            --block.turn_ops;
                            // By an odd seed it is over with the last of them, so that others see what stands there
                            // then. By an even one turns are long: some mistakes need that others wait for long.
                            const bool last = !block.turn_ops && w.worker->launch->options->schedule_seed % 2;
                            settled = budget = last ? 0 : std::max(budget, kBehindOrdered);
                        }
                        if (polls) {
                            f->polls = 0;
                            f->executed = 0;
                            f->yielded = true;
                            f->pc = uint32_t(op - ops) + 1;
                            goto next_fragment;
                        }
                    }
                    ++op;
                    break;
                }
                case Flow::yield: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    settle(*f);
                    if (lanes) {
                        run_single(w, *op, mask, lanes);
                        if (++f->polls >= kMostPolls) {
                            f->polls = 0;
                            f->executed = 0;
                            f->yielded = true;
                            f->pc = uint32_t(op - ops) + 1;
                            goto next_fragment;
                        }
                    }
                    ++op;
                    break;
                }
                case Flow::mbarrier_wait: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    settle(*f);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        f->pc = uint32_t(op - ops);
                        if (!wait_for_mbarrier(w, *f, *op, lanes)) goto next_fragment;
                        w.exec = mask;
                    }
                    ++op;
                    break;
                }
                case Flow::cluster_wait: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    settle(*f);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        f->pc = uint32_t(op - ops);
                        if (!wait_for_cluster(w, *f, *op, lanes)) goto next_fragment;
                        w.exec = mask;
                    }
                    ++op;
                    break;
                }
                case Flow::warp_sync: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        f->pc = uint32_t(op - ops);
                        if (!arrive_at_warp_sync(w, *f, *op, lanes)) goto next_fragment;
                        w.exec = mask;
                    }
                    ++op;
                    break;
                }
                case Flow::warpgroup: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        settle(*f);
                        f->pc = uint32_t(op - ops);
                        f->polls = 0;
                        arrive_at_warpgroup(w, *f, *op, lanes);
                        goto next_fragment;
                    }
                    ++op;
                    break;
                }
                case Flow::block_sync: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        settle(*f);
                        f->pc = uint32_t(op - ops);
                        f->polls = 0;
                        arrive_at_barrier(w, *f, *op, lanes);
                        goto next_fragment;
                    }
                    ++op;
                    break;
                }
                case Flow::indirect: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        const uint32_t fragments = w.count;
                        split_indirect(w, *f, *op, lanes);
                        if (w.count > fragments) ++stats[op - ops].divergent;
                        goto next_fragment;
                    }
                    ++op;
                    break;
                }
                case Flow::call: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        call(w, *f, *op, lanes);
                        goto next_fragment;
                    }
                    ++op;
                    break;
                }
                case Flow::ret:
                case Flow::exit: {
                    const uint32_t lanes = guarded_lanes(w, *op, mask);
                    if (lanes) {
                        if (op->guard != kNoSlot) ++stats[op - ops].issued;
                        settle(*f);
                        Frame *const frame = f->frame;
                        f->mask = mask & ~lanes;
                        f->pc = uint32_t(op - ops) + 1;
                        if (op->flow == Flow::ret && frame->parent) {
                            add_fragment(w, frame->return_pc, lanes, frame->parent);
                            leave_function(w, frame, lanes);
                            drop_empty_fragments(w);
                        } else {
                            drop_empty_fragments(w);
                            exit_lanes(w, frame, lanes);
                        }
                        goto next_fragment;
                    }
                    ++op;
                    break;
                }
                case Flow::straight:
                case Flow::guarded:
                    break;
            }
            if constexpr (kWatched) {
                if (watch->comes_to(w, *f, uint32_t(op - ops))) {
                    f->pc = uint32_t(op - ops);
                    settle(*f);
                    return Progress::spinning;
                }
            }
            if (uint32_t(op - ops) >= limit || budget <= 0) {
                f->pc = uint32_t(op - ops);
                settle(*f);
                goto next_fragment;
            }
        }
    next_fragment:
        // f may be gone by now; what was not settled belongs to nobody in particular then.
        now += uint64_t(settled - budget);
        settled = budget;
        if (budget <= 0) {
            for (uint32_t i = 0; i < w.count; ++i) {
                Fragment &other = w.fragments[i];
                if (other.executed > kMostInstructions && others_ready(w, other)) {
                    other.executed = 0;
                    other.yielded = true;
                }
            }
            return w.count ? Progress::sliced : Progress::done;
        }
    }
}

}  // namespace

Progress run_warp(WarpContext &w, uint64_t slice) {
    return run<false>(w, slice, nullptr);
}

Progress watch_warp(WarpContext &w, uint64_t slice, Watch &watch) {
    return run<true>(w, slice, &watch);
}

}  // namespace warpsim
