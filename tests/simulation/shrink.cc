#include "tests/simulation/shrink.h"

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tests/simulation/control_plane.h"

namespace parasol::simulation {
namespace {

// A smaller schedule draws other delays: several seeds are tried for each.
constexpr uint64_t kSeeds = 6;
constexpr absl::Duration kShortest = absl::Milliseconds(100);

// Replaces `schedule` by `smaller` if that still violates the invariant.
bool Adopt(Schedule& schedule, Schedule smaller, const ScheduleRun& run,
           const std::string& kind) {
  const uint64_t seed = smaller.seed;
  for (uint64_t i = 0; i < kSeeds; ++i) {
    smaller.seed = seed + i;
    const auto violation = run(smaller);
    if (!violation || violation->kind != kind) continue;
    schedule = std::move(smaller);
    return true;
  }
  return false;
}

// The ways to make a job and a cluster smaller.
const std::vector<std::function<void(Shape&)>>& Reductions() {
  static const auto* const reductions =
      new std::vector<std::function<void(Shape&)>>{
          [](Shape& shape) { shape.loss = 0; },
          [](Shape& shape) { shape.workers = 1; },
          [](Shape& shape) { --shape.workers; },
          [](Shape& shape) { shape.ps = 1; },
          [](Shape& shape) { shape.epochs = 0; },
          [](Shape& shape) { shape.overlap = 1; },
          [](Shape& shape) { shape.all_reduce = Shape::AllReduce::kAuto; },
          [](Shape& shape) { shape.devices = 1; },
          [](Shape& shape) {
            if (shape.mode != Shape::Mode::kGroup) {
              shape.mode = Shape::Mode::kAsynchronous;
            }
          },
          [](Shape& shape) { shape.steps /= 2; },
          [](Shape& shape) { shape.checkpoint_every = 1 << 20; }};
  return *reductions;
}

bool DropFaults(Schedule& schedule, const ScheduleRun& run,
                const std::string& kind) {
  bool has_changed = false;
  for (size_t i = schedule.faults.size(); i-- > 0;) {
    Schedule smaller = schedule;
    smaller.faults.erase(smaller.faults.begin() + i);
    has_changed |= Adopt(schedule, std::move(smaller), run, kind);
  }
  return has_changed;
}

bool ReduceShape(Schedule& schedule, const ScheduleRun& run,
                 const std::string& kind) {
  bool has_changed = false;
  for (const auto& reduce : Reductions()) {
    Schedule smaller = schedule;
    reduce(smaller.shape);
    const bool is_job = smaller.shape.workers > 0 && smaller.shape.steps > 0;
    if (!is_job || smaller.shape.ToString() == schedule.shape.ToString()) {
      continue;
    }
    has_changed |= Adopt(schedule, std::move(smaller), run, kind);
  }
  return has_changed;
}

void ShortenFaults(Schedule& schedule, const ScheduleRun& run,
                   const std::string& kind) {
  for (size_t i = 0; i < schedule.faults.size(); ++i) {
    while (schedule.faults[i].length > kShortest) {
      Schedule smaller = schedule;
      smaller.faults[i].length /= 2;
      if (!Adopt(schedule, std::move(smaller), run, kind)) break;
    }
  }
}

}  // namespace

Schedule Shrink(Schedule schedule, const ScheduleRun& run,
                const std::string& kind) {
  while (DropFaults(schedule, run, kind) || ReduceShape(schedule, run, kind)) {
  }
  ShortenFaults(schedule, run, kind);
  return schedule;
}

Schedule Shrink(Schedule schedule, const Rules& rules,
                const std::string& kind) {
  const ScheduleRun run = [&rules](const Schedule& smaller) {
    return ControlPlane::Run(smaller, rules).violation;
  };
  return Shrink(std::move(schedule), run, kind);
}

}  // namespace parasol::simulation
