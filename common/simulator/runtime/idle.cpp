#include "runtime/idle.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

using std::chrono::milliseconds;

// What is counted is how often this thread woke up, not the clock: a process that gets no time does not idle.
constexpr milliseconds kTick{100}, kShortTick{10}, kBetween{1};
constexpr unsigned kPatience = 10;  // ticks, the first time

}  // namespace

void IdleProgress::watch() {
    if (started_) return;
    started_ = true;
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread([this] { run(); }).detach();
    } catch (const std::system_error &) {
        // No thread is to be had, as in a browser: what is queued runs when something waits for it.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void IdleProgress::stop() {
    stopped_ = true;
    for (unsigned i = 0; running_ && i < 10000; ++i) std::this_thread::sleep_for(kBetween);
}

void IdleProgress::run() {
    uint64_t seen = 0;
    unsigned unchanged = 0;
    unsigned still = 0;
    bool said = false;
    while (!stopped_) {
        std::this_thread::sleep_for(said ? kShortTick : kTick);
        running_ = true;
        if (const std::unique_lock guard(runtime_.mutex, std::try_to_lock); guard && !stopped_) {
            const uint64_t activity = runtime_.scheduler.activity();
            unchanged = runtime_.scheduler.has_queued() && activity == seen ? unchanged + 1 : 0;
            seen = activity;
            if (unchanged >= (said ? 1 : kPatience)) {
                if (!said)
                    say("work has been queued for a second, and the host makes no CUDA call that waits for it: it "
                        "runs now, and from now on 10 ms after it was queued");
                said = true;
                run_queued(seen);
                unchanged = 0;
                // A launch that stands still, and a host that makes no call: as long as a launch may run.
                const bool stuck = runtime_.scheduler.stands_still() && runtime_.scheduler.activity() == seen;
                still = stuck ? still + 1 : 0;
                const double seconds = std::chrono::duration<double>(kShortTick).count() * still;
                if (stuck && runtime_.options.timeout_s > 0 && seconds > runtime_.options.timeout_s)
                    runtime_.scheduler.resume_first();
            }
        }
        running_ = false;
    }
}

// Until nothing is left or the host has gone on.
void IdleProgress::run_queued(uint64_t &seen) {
    while (!stopped_ && runtime_.scheduler.run_any()) {
        seen = runtime_.scheduler.activity();
        runtime_.mutex.unlock();
        std::this_thread::sleep_for(kBetween);  // others want the lock
        runtime_.mutex.lock();
        if (runtime_.scheduler.activity() != seen) return;
    }
}

}  // namespace warpsim::rt
