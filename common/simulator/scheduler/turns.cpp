#include "scheduler/turns.h"

#include <algorithm>
#include <thread>

#include "core/op_formats.h"
#include "machine/addresses.h"
#include "machine/cluster.h"
#include "machine/global_hazards.h"
#include "scheduler/standstill.h"

namespace warpsim {

namespace {

// So many blocks that do not spin take turns, few enough for the CPU's caches; others join for those that spin.
constexpr uint64_t kTaking = 64;
// A block that has had so many turns counts as one that spins, whatever it does: it may wait for any other.
constexpr uint32_t kManyTurns = 64;
constexpr uint64_t kSameTurns = 8;     // of each block, none of which ends, before it is looked at whether they go on
constexpr unsigned kManyLooks = 4;     // at blocks that go on and never end, before other launches come first
constexpr unsigned kTimedPauses = 16;  // of blocks that wait by the clock, before much time passes for them
constexpr unsigned kPatience = 2000;   // looks for work before a host thread goes to sleep

}  // namespace

bool meets_other_blocks(const Warp &w, const Op &op, uint32_t lanes) {
    const bool generic = op.cls == OpClass::load_generic || op.cls == OpClass::store_generic ||
                         (op.cls == OpClass::atomic && space_of(op) == MemorySpace::generic);
    if (!generic) return true;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    return split_generic(address, lanes).global != 0;
}

Turns::Turns(LaunchShared &launch, uint64_t resident)
    : launch_(launch), resident_(resident), random_(launch.options->schedule_seed) {
    if (launch.program->communicates) admit();
}

Turns::~Turns() {
    show_left(true);
}

void Turns::admit() {
    const uint64_t most = std::min(resident_, kTaking + 2 * spinning_);
    while (queue_.size() < most && admitted_ < launch_.teams) {
        auto place = std::make_unique<Place>();
        place->id = admitted_++;
        place->total = launch_.instructions.load(std::memory_order_relaxed);
        fresh_.push_back(place.get());
        queue_.push_back(std::move(place));
        same_ = patience_ = looks_ = 0;
    }
}

// The block at the turn, if it waits for it, else the first that has not started.
Turns::Place *Turns::next() {
    Place *front = queue_.front().get();
    if (front->state == State::waiting) return front;
    if (fresh_.empty()) return nullptr;
    const auto found = front->state == State::fresh ? std::find(fresh_.begin(), fresh_.end(), front) : fresh_.begin();
    Place *const place = *found;
    fresh_.erase(found);
    return place;
}

void Turns::wake() {
    events_.fetch_add(1, std::memory_order_release);
    if (!idle_) return;
    if (launch_.stopped || queue_.empty() || has_paused()) {
        work_.notify_all();
    } else if (queue_.front()->state == State::waiting || !fresh_.empty()) {
        work_.notify_one();
    }
}

// Up to where the block can do no more without a turn; what ended it is kept until then.
void Turns::run_apart(Place &place, Worker &worker) {
    BlockContext &block = *place.block;
    try {
        if (!place.started) {
            place.started = true;
            start_block(block, worker, place.id);
            block.total = place.total;
        }
        move_block(block, worker);
        if (run_block(block, true)) finish_block(block);
    } catch (const LaunchAborted &) {
        abandon_block(block);
    } catch (const std::exception &e) {
        block.failure = std::string("the simulator failed: ") + e.what();
    }
}

// True: the block is over.
bool Turns::run_turn(Place &place, Worker &worker) {
    BlockContext &block = *place.block;
    if (!is_over(block)) {
        try {
            move_block(block, worker);
            if (take_turn(block)) finish_block(block);
            if (block.global_shadow) block.global_shadow->settle_doubts(false);
            if (block.late_stores) block.late_stores->end_turn();
        } catch (const LaunchAborted &) {
            abandon_block(block);
        } catch (const std::exception &e) {
            block.failure = std::string("the simulator failed: ") + e.what();
        }
    }
    if (block.global_shadow && block.failure.empty()) hand_in_accesses(launch_, *block.global_shadow);
    const uint64_t now = clock_of(block), since = now - block.settled;
    block.total = launch_.instructions.fetch_add(since, std::memory_order_relaxed) + since;
    block.settled = now;
    return is_over(block);
}

// The next one's turn. A block that goes on comes last.
void Turns::pass_on(Place &place, bool over) {
    std::unique_ptr<Place> front = std::move(queue_.front());
    queue_.pop_front();
    ++same_;
    if (over) {
        same_ = patience_ = looks_ = timed_ = 0;
        if (place.block->late_stores && !place.block->late_stores->empty())
            left_.push_back(std::move(place.block->own_late_stores));
        free_.push_back(std::move(place.block));
    } else {
        queue_.push_back(std::move(front));
    }
    show_left(false);
    admit();
    if (random_ && !queue_.empty()) std::swap(queue_.front(), queue_[next_random(random_) % queue_.size()]);
}

// Stores of blocks that are over; all: whether or not they have waited long enough.
void Turns::show_left(bool all) {
    for (const auto &stores : left_) {
        if (all) {
            stores->show_all();
        } else {
            stores->end_turn();
        }
    }
    std::erase_if(left_, [](const auto &stores) { return stores->empty(); });
}

// Every block has had several turns, none has ended, and no other can be admitted.
bool Turns::is_long_the_same() const {
    const bool full = admitted_ == launch_.teams || queue_.size() >= resident_;
    const auto had_turn = [](const auto &place) { return place->had_turn; };
    return full && same_ >= std::max(patience_, kSameTurns * queue_.size()) &&
           std::all_of(queue_.begin(), queue_.end(), had_turn);
}

// Before a turn: waits until no block runs apart, and finds out whether any of them can go on. Nobody else touches a
// block or its place meanwhile, for the front is not free to take and nothing is left to start.
void Turns::check_standstill(Place &front, Worker &worker, std::unique_lock<std::mutex> &lock) {
    patience_ = 2 * same_;
    show_left(true);
    front.state = State::running;
    const auto is_running = [&](const auto &place) { return place.get() != &front && place->state == State::running; };
    while (std::any_of(queue_.begin(), queue_.end(), is_running)) {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
    }
    Standstill standstill, later;
    std::vector<BlockContext *> blocks;
    BlockContext *current = nullptr;
    bool timed = false;  // somebody looks at a clock
    const auto look = [&](Standstill &at, Verdict (Standstill::*how)(BlockContext &)) {
        for (BlockContext *block : team_of(current)) block->has_turn = true;
        const Verdict verdict = (at.*how)(*current);
        for (BlockContext *block : team_of(current)) block->has_turn = false;
        return verdict;
    };
    try {
        for (const auto &place : queue_) {
            current = place->block.get();
            move_block(*current, worker);
            if (current->late_stores && !current->late_stores->empty()) {  // somebody may wait for what is shown now
                current->late_stores->show_all();
                patience_ = same_ + kSameTurns * queue_.size();
                return;
            }
            Verdict verdict = look(standstill, &Standstill::add);
            if (verdict == Verdict::reads_clock) {
                timed = true;
                verdict = look(standstill, &Standstill::add_now);
            }
            // Where waits may end in vain, they do so here: soon again.
            if (verdict == Verdict::uncertain) patience_ = same_ + kSameTurns * queue_.size();
            if (verdict != Verdict::still) {
                timed_ = 0;
                if (may_pause_ && ++looks_ >= kManyLooks) pause(Pause::undecided, front);
                return;
            }
            blocks.push_back(current);
        }
        if (timed && may_pause_ && timed_ < kTimedPauses) {
            ++timed_;
            return pause(Pause::undecided, front);
        }
        // Nothing but clocks moves, and others have had their turn: who gives up after some time does so now.
        for (BlockContext *const block : blocks) {
            current = block;
            if (timed && look(later, &Standstill::add_later) != Verdict::still) {
                timed_ = 0;
                patience_ = same_ + kSameTurns * queue_.size();
                return;
            }
        }
        if (may_pause_) {
            seen_ = standstill.seen();
            return pause(Pause::still, front);
        }
        report_standstill(blocks, timed ? later : standstill, admitted_, resident_);
    } catch (const LaunchAborted &) {
        abandon_failed();
    } catch (const std::exception &e) {
        current->failure = std::string("the simulator failed: ") + e.what();
    }
}

void Turns::pause(Pause why, Place &front) {
    pause_ = why;
    front.state = State::waiting;
    // Others may wait for what its blocks have stored.
    for (const auto &place : queue_)
        if (place->block->late_stores) place->block->late_stores->show_all();
}

bool Turns::may_go_on() const {
    return std::any_of(seen_.begin(), seen_.end(), [](const auto &seen) { return !seen.second.is_same(); });
}

void Turns::resume() {
    pause_ = Pause::none;
    same_ = patience_ = looks_ = 0;
    seen_.clear();
}

// A report has ended a block other than the one that has the turn.
void Turns::abandon_failed() {
    for (const auto &place : queue_) {
        BlockContext *const first = place->block.get();
        const Team team = team_of(first);
        if (std::all_of(team.begin(), team.end(), [](const BlockContext *b) { return b->failure.empty(); })) continue;
        abandon_block(*first);
        hand_in(launch_, *first);
    }
}

void Turns::work(Worker &worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!launch_.stopped && !queue_.empty() && !has_paused()) {
        Place *const place = next();
        if (!place) {
            const uint64_t seen = events_.load(std::memory_order_acquire);
            lock.unlock();
            for (unsigned i = 0; i < kPatience && events_.load(std::memory_order_acquire) == seen; ++i)
                std::this_thread::yield();
            lock.lock();
            if (events_.load(std::memory_order_acquire) != seen) continue;
            ++idle_;
            work_.wait(lock);
            --idle_;
            continue;
        }
        if (place->state == State::fresh) {
            place->state = State::running;
            if (free_.empty()) {
                place->block = std::make_unique<BlockContext>();
            } else {
                place->block = std::move(free_.back());
                free_.pop_back();
            }
            lock.unlock();
            run_apart(*place, worker);
            lock.lock();
        }
        place->state = State::waiting;
        while (!launch_.stopped && queue_.front().get() == place) {
            if (is_long_the_same()) check_standstill(*place, worker, lock);
            if (has_paused()) break;
            BlockContext &block = *place->block;
            const bool was_spinning = block.spinning || block.turns >= kManyTurns;
            place->state = State::running;
            place->had_turn = true;
            lock.unlock();
            const bool over = run_turn(*place, worker);
            hand_in(launch_, block);
            lock.lock();
            const bool spins = !over && (block.spinning || block.turns >= kManyTurns);
            spinning_ += uint64_t(spins) - uint64_t(was_spinning);
            pass_on(*place, over);
            wake();
            if (over) break;
            lock.unlock();
            run_apart(*place, worker);
            lock.lock();
            place->state = State::waiting;
        }
    }
    wake();
}

}  // namespace warpsim
