#ifndef PARASOL_TESTS_SIMULATION_EVENT_LOOP_H_
#define PARASOL_TESTS_SIMULATION_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace parasol::simulation {

// The simulated time, and what is to happen when. Events of the same time
// happen in the order in which they were added.
class EventLoop {
 public:
  using Action = std::function<void()>;

  absl::Time now() const { return now_; }
  int64_t events() const { return events_; }

  void At(absl::Time time, Action action);

  // Moves the time to the next event and carries it out. Returns false if there
  // is none.
  bool RunNext();

 private:
  struct Event {
    absl::Time time;
    int64_t number = 0;
    Action action;
  };
  // Orders a heap with the earliest event on top.
  struct IsLater {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };

  absl::Time now_ = absl::FromUnixSeconds(1000000000);
  int64_t added_ = 0;
  int64_t events_ = 0;
  std::vector<Event> heap_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_EVENT_LOOP_H_
