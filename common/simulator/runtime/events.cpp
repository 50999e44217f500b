#include "runtime/events.h"

#include <algorithm>

#include "runtime/runtime.h"

namespace warpsim::rt {

std::shared_ptr<Event> Events::create(unsigned flags) {
    auto event = std::make_shared<Event>();
    event->flags = flags;
    event->device = current_device();
    events_[reinterpret_cast<cudaEvent_t>(event.get())] = event;
    return event;
}

std::shared_ptr<Event> Events::resolve(cudaEvent_t handle) const {
    const auto it = events_.find(handle);
    if (it == events_.end()) throw Failure{cudaErrorInvalidResourceHandle};
    return it->second;
}

void Events::destroy(cudaEvent_t handle) {
    if (!events_.erase(handle)) throw Failure{cudaErrorInvalidResourceHandle};
}

void Events::clear(unsigned device) {
    std::erase_if(events_, [&](const auto &event) { return event.second->device == device; });
}

Event::Clock::time_point Events::now() {
    last_ = std::max(Event::Clock::now(), last_ + std::chrono::microseconds(1));
    return last_;
}

}  // namespace warpsim::rt
