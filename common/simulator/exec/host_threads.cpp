#include "exec/host_threads.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace warpsim {

namespace {

// Never destroyed: its threads wait until the process ends.
class HostThreads {
  public:
    void run(unsigned count, const std::function<void(unsigned)> &job) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (threads_ + 1 < count) start();
            job_ = &job;
            wanted_ = count - 1;
            taken_ = 0;
            running_ = count - 1;
        }
        begin_.notify_all();
        job(0);
        std::unique_lock<std::mutex> lock(mutex_);
        end_.wait(lock, [&] { return !running_; });
        job_ = nullptr;
    }

  private:
    void start() {
        ++threads_;
        // The program's signals are for its own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread([this] { work(); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            begin_.wait(lock, [&] { return job_ && taken_ < wanted_; });
            const unsigned number = ++taken_;
            const auto &job = *job_;
            lock.unlock();
            job(number);
            lock.lock();
            if (!--running_) end_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const std::function<void(unsigned)> *job_ = nullptr;
    unsigned threads_ = 0, wanted_ = 0, taken_ = 0, running_ = 0;
};

}  // namespace

void run_on_threads(unsigned count, const std::function<void(unsigned)> &job) {
    if (count <= 1) return job(0);
    static HostThreads &threads = *new HostThreads;
    threads.run(count, job);
}

}  // namespace warpsim
