#include "tests/simulation/group/group_schedule.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/random.h"

namespace parasol::simulation {
namespace {

using Kind = Fault::Kind;

// Longer than a lease (10 s) now and then.
constexpr absl::Duration kLongest = absl::Seconds(25);
// One seed of so many has a cluster that is stopped as a whole.
constexpr uint64_t kStopEvery = 8;
// One seed of so many has a job that waits for its evaluations.
constexpr uint64_t kLagEvery = 3;
// The protocol of a step among three workers has about so many points.
constexpr int64_t kPointsOfAStep = 25;

Shape::AllReduce DrawAllReduce(Random& random) {
  if (random.Chance(250)) return Shape::AllReduce::kAuto;
  using AllReduce = Shape::AllReduce;
  static constexpr AllReduce kOthers[] = {
      AllReduce::kChain, AllReduce::kMachines, AllReduce::kRing,
      AllReduce::kStar, AllReduce::kTree};
  return kOthers[random.Below(std::size(kOthers))];
}

Shape DrawShape(Random& random) {
  Shape shape;
  shape.mode = Shape::Mode::kGroup;
  shape.ps = 1;
  shape.chief_beside = random.Chance(600);
  shape.workers = static_cast<int>(random.Between(1, 4));
  shape.replicas = static_cast<int>(random.Chance(700)
                                        ? shape.workers
                                        : random.Between(1, shape.workers + 2));
  shape.steps = random.Between(4, 24);
  shape.compute =
      random.Between(absl::Milliseconds(60), absl::Milliseconds(700));
  shape.checkpoint_every = random.Between(2, 1 + shape.steps);
  shape.max_to_keep = static_cast<int>(random.Between(1, 3));
  if (random.Chance(200)) shape.loss = random.Between(1, 30);
  return shape;
}

// Half have several in each worker.
void DrawDevices(Random& random, Shape& shape) {
  if (random.Chance(500)) return;
  shape.devices = static_cast<int>(random.Between(2, 3));
  shape.replicas = shape.workers * shape.devices;
}

// A quarter have damaged messages, now and then so many that five groups in a
// row end at the same step.
void DrawFlips(Random& random, absl::Duration last, Schedule& schedule) {
  if (random.Chance(750)) return;
  Fault fault;
  fault.kind = Kind::kFlip;
  fault.at = random.Between(absl::ZeroDuration(), last);
  fault.length = random.Between(absl::Milliseconds(50), absl::Seconds(6));
  fault.amount = random.Between(1, 60);
  schedule.faults.push_back(fault);
}

TaskId DrawTarget(const Shape& shape, Random& random) {
  const uint64_t kind = random.Below(10);
  if (kind < 2) return {"chief", 0};
  if (kind < 5) return {"worker", 0};
  return {"worker", static_cast<int>(random.Below(shape.workers))};
}

Kind DrawKind(Random& random) {
  static const auto* const shares = new std::vector<std::pair<Kind, uint64_t>>{
      {Kind::kKill, 30},      {Kind::kTerminate, 14},   {Kind::kStop, 16},
      {Kind::kReplace, 6},    {Kind::kCutFromChief, 8}, {Kind::kCutFromAll, 6},
      {Kind::kPart, 10},      {Kind::kSlowClock, 2},    {Kind::kLoss, 3},
      {Kind::kReadErrors, 2}, {Kind::kWriteErrors, 3}};
  uint64_t choice = random.Below(100);
  for (const auto& [kind, share] : *shares) {
    if (choice < share) return kind;
    choice -= share;
  }
  return Kind::kKill;
}

// Changes the fault to one that its target can have.
void Fit(const Shape& shape, Fault& fault) {
  const bool is_chief = fault.target.role == "chief";
  const bool is_worker0 = fault.target == TaskId{"worker", 0};
  switch (fault.kind) {
    case Kind::kReplace:
      if (is_chief && shape.chief_beside) fault.kind = Kind::kStop;
      return;
    case Kind::kCutFromChief:
      if (is_chief || (is_worker0 && shape.chief_beside)) {
        fault.kind = Kind::kKill;
      }
      return;
    case Kind::kCutFromAll:
      if (is_worker0 || (is_chief && shape.chief_beside)) {
        fault.kind = Kind::kPart;
        fault.amount = 1;
      }
      return;
    default:
      return;
  }
}

Fault DrawFault(const Shape& shape, Random& random) {
  Fault fault;
  fault.kind = DrawKind(random);
  fault.target = DrawTarget(shape, random);
  fault.length = random.Chance(700)
                     ? random.Between(absl::Milliseconds(50), absl::Seconds(4))
                     : random.Between(absl::Seconds(4), kLongest);
  if (fault.kind == Kind::kLoss) fault.amount = random.Between(50, 500);
  if (fault.kind == Kind::kSlowClock) fault.amount = random.Between(40, 90);
  if (fault.kind == Kind::kPart) {
    fault.amount = random.Between(1, (1 << shape.workers) - 1);
    if (random.Chance(300)) fault.amount |= 1 << 30;  // the chief
  }
  Fit(shape, fault);
  return fault;
}

}  // namespace

Schedule DrawGroupSchedule(uint64_t seed) {
  Random random(seed * 0x9e37 + 77);
  Schedule schedule;
  schedule.seed = seed;
  schedule.shape = DrawShape(random);
  const Shape& shape = schedule.shape;
  const absl::Duration last =
      absl::Seconds(3) + shape.compute * shape.steps * 1.3;
  const bool meets = seed % 3 == 1;
  const bool has_point = seed % 3 == 2;
  const int64_t faults = random.Chance(100) ? 0 : random.Between(1, 5);
  const absl::Duration begin = random.Between(absl::ZeroDuration(), last);
  for (int64_t i = 0; i < faults; ++i) {
    Fault fault = DrawFault(shape, random);
    fault.at = meets || has_point ? begin + random.Between(absl::ZeroDuration(),
                                                           absl::Seconds(5))
                                  : random.Between(absl::ZeroDuration(), last);
    if (meets) fault.length = std::min(fault.length, absl::Seconds(12));
    if (has_point && random.Chance(600)) {
      fault.at_point = random.Between(1, shape.steps * kPointsOfAStep);
    }
    schedule.faults.push_back(fault);
  }
  schedule.shape.all_reduce = DrawAllReduce(random);
  DrawDevices(random, schedule.shape);
  DrawFlips(random, last, schedule);
  if (seed / 3 % kLagEvery == 0) {
    schedule.shape.evaluation =
        random.Between(absl::Milliseconds(300), absl::Milliseconds(4000));
    schedule.shape.max_lag = static_cast<int>(random.Below(3));
  }
  if (seed % kStopEvery == kStopEvery - 1) {
    schedule.faults = {DrawStop(last, random)};
    schedule.shape.loss = 0;
    schedule.shape.chief_beside = true;
  }
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return schedule;
}

}  // namespace parasol::simulation
