#include "tests/simulation/event_loop.h"

#include <algorithm>
#include <utility>

namespace parasol::simulation {

void EventLoop::At(absl::Time time, Action action) {
  heap_.push_back({std::max(time, now_), added_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), IsLater());
}

bool EventLoop::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), IsLater());
  Event event = std::move(heap_.back());
  heap_.pop_back();
  now_ = event.time;
  ++events_;
  event.action();
  return true;
}

}  // namespace parasol::simulation
