#include "tests/simulation/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random.h"

namespace parasol::simulation {
namespace {

constexpr uint64_t kManyWorkersEvery = 2000;
constexpr int kManyWorkers = 1000;
// Every such seed's cluster is stopped as a whole, and nothing else happens.
constexpr uint64_t kStopEvery = 10;
// The workers of every such seed come late, the last of them when one alone
// would have done half of the steps.
constexpr uint64_t kLateEvery = 7;
// The training set of every such seed grows, where the mode allows it.
constexpr uint64_t kGrowsEvery = 5;
// Every such seed's shards have standbys, and its faults are about them.
constexpr uint64_t kReplicatesEvery = 5;
constexpr absl::Duration kLatest = absl::Seconds(10);
// Longer than a lease (10 s) now and then.
constexpr absl::Duration kLongest = absl::Seconds(25);
// Share of the schedules that have a theme, in thousandths.
constexpr uint64_t kThemed = 500;
// Share of a chief's successors with another partitioner, in thousandths.
constexpr uint64_t kOtherLayouts = 150;

using Kind = Fault::Kind;

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kTerminate:
      return "terminated";
    case Kind::kKill:
      return "killed";
    case Kind::kLoseMachine:
      return "lost with its machine";
    case Kind::kStop:
      return "stopped";
    case Kind::kReplace:
      return "stopped and replaced";
    case Kind::kCutFromChief:
      return "cut from the chief";
    case Kind::kCutFromAll:
      return "cut from all";
    case Kind::kRefuse:
      return "refuses connections";
    case Kind::kSlowClock:
      return "slow clock";
    case Kind::kLoss:
      return "lossy network";
    case Kind::kReadErrors:
      return "disk can't be read";
    case Kind::kWriteErrors:
      return "disk can't be written";
    case Kind::kPart:
      return "parted";
    case Kind::kDamage:
      return "newest checkpoint damaged";
    case Kind::kFlip:
      return "flipped bits";
    case Kind::kStopAll:
      return "all are told to end";
  }
  return "?";
}

const char* NameOf(Shape::AllReduce all_reduce) {
  switch (all_reduce) {
    case Shape::AllReduce::kAuto:
      return "AUTO";
    case Shape::AllReduce::kChain:
      return "a chain";
    case Shape::AllReduce::kMachines:
      return "a chain of machines";
    case Shape::AllReduce::kRing:
      return "RING";
    case Shape::AllReduce::kStar:
      return "a star";
    case Shape::AllReduce::kTree:
      return "a tree";
  }
  return "?";
}

int DrawWorkers(uint64_t seed, Random& random) {
  if (seed % kManyWorkersEvery == kManyWorkersEvery - 1) return kManyWorkers;
  const uint64_t kind = random.Below(100);
  if (kind < 75) return static_cast<int>(random.Between(1, 3));
  if (kind < 98) return static_cast<int>(random.Between(4, 8));
  return static_cast<int>(random.Between(20, 50));
}

Shape DrawShape(uint64_t seed, Random& random) {
  Shape shape;
  shape.workers = DrawWorkers(seed, random);
  shape.ps = static_cast<int>(random.Chance(500) ? 1 : random.Between(2, 4));
  const uint64_t mode = random.Below(100);
  if (mode >= 40) shape.mode = Shape::Mode::kBoundedStaleness;
  if (mode >= 70 && shape.workers <= 8) {
    shape.mode = Shape::Mode::kSynchronous;
  }
  shape.bound = random.Between(0, 3);
  shape.replicas = static_cast<int>(random.Between(1, shape.workers + 1));
  if (random.Chance(300)) shape.backups = 1;
  shape.steps = shape.workers > 8
                    ? random.Between(1, 4) * shape.workers
                    : random.Between(5, 30) * std::max(1, shape.workers / 3);
  shape.compute =
      random.Between(absl::Milliseconds(100), absl::Milliseconds(900));
  shape.checkpoint_every = random.Between(2, 1 + shape.steps / 2);
  shape.max_to_keep = static_cast<int>(random.Between(1, 3));
  shape.overlap = random.Chance(500) ? 2 : 1;
  if (random.Chance(300)) {
    shape.epochs = static_cast<int>(random.Between(1, 3));
    shape.steps = std::max<int64_t>(1, shape.steps / shape.epochs);
    shape.steps *= shape.epochs;
  }
  if (random.Chance(250)) shape.loss = random.Between(1, 30);
  if (random.Chance(300)) {
    shape.evaluation =
        random.Between(absl::Milliseconds(600), absl::Milliseconds(4000));
    shape.patience = static_cast<int>(random.Between(1, 4));
    // Not drawn: a seed's other numbers stay what they were.
    shape.max_lag = static_cast<int>(shape.steps % 4) - 1;
  }
  if (seed % kLateEvery == 3 && shape.workers < kManyWorkers) {
    shape.late = std::min(kLatest, shape.steps * shape.compute / 2);
  }
  return shape;
}

// A fault's kinds with their shares, in hundredths.
using Shares = std::vector<std::pair<Kind, uint64_t>>;

const Shares& AnyKind() {
  static const Shares* const shares =
      new Shares{{Kind::kKill, 30},       {Kind::kLoseMachine, 4},
                 {Kind::kTerminate, 6},   {Kind::kStop, 12},
                 {Kind::kReplace, 12},    {Kind::kCutFromChief, 10},
                 {Kind::kCutFromAll, 8},  {Kind::kSlowClock, 4},
                 {Kind::kLoss, 4},        {Kind::kReadErrors, 4},
                 {Kind::kWriteErrors, 4}, {Kind::kDamage, 2}};
  return *shares;
}

// A theme: faults that hit the same few tasks within a short time, which
// independent faults rarely do.
struct Theme {
  // Shape that the theme needs.
  Shape::Mode mode;
  int min_workers;
  int min_ps;
  Shares kinds;
  // Shares of the tasks that are hit, in tenths; the rest hits workers.
  uint64_t chief;
  uint64_t ps;
  absl::Duration shortest;
  absl::Duration longest;
  // Time within which the faults begin.
  absl::Duration window;
  // Share of the chief's successors with another partitioner, in thousandths.
  uint64_t other_layouts;
};

const std::vector<Theme>& Themes() {
  using Mode = Shape::Mode;
  constexpr auto kMs = [](int64_t n) { return absl::Milliseconds(n); };
  static const auto* const themes = new std::vector<Theme>{
      // Several processes of one place, beside a chief that was just lost.
      {.mode = Mode::kAsynchronous,
       .min_workers = 1,
       .min_ps = 1,
       .kinds = {{Kind::kReplace, 40},
                 {Kind::kKill, 15},
                 {Kind::kLoseMachine, 20},
                 {Kind::kCutFromChief, 25}},
       .chief = 4,
       .ps = 3,
       .shortest = kMs(200),
       .longest = kMs(15000),
       .window = kMs(6000),
       .other_layouts = 0},
      // A worker that comes late to a chief that is lost soon.
      {.mode = Mode::kBoundedStaleness,
       .min_workers = 2,
       .min_ps = 1,
       .kinds = {{Kind::kKill, 60},
                 {Kind::kStop, 20},
                 {Kind::kCutFromChief, 10},
                 {Kind::kCutFromAll, 10}},
       .chief = 4,
       .ps = 0,
       .shortest = kMs(50),
       .longest = kMs(6000),
       .window = kMs(8000),
       .other_layouts = 0},
      // Losses of shards and replicas within one step.
      {.mode = Mode::kSynchronous,
       .min_workers = 2,
       .min_ps = 2,
       .kinds = {{Kind::kKill, 65}, {Kind::kStop, 15}, {Kind::kLoss, 20}},
       .chief = 1,
       .ps = 6,
       .shortest = kMs(50),
       .longest = kMs(800),
       .window = kMs(1500),
       .other_layouts = 0},
      // Chiefs of other layouts, of which some tasks don't hear at once.
      {.mode = Mode::kAsynchronous,
       .min_workers = 1,
       .min_ps = 1,
       .kinds = {{Kind::kKill, 60},
                 {Kind::kCutFromChief, 30},
                 {Kind::kReplace, 10}},
       .chief = 5,
       .ps = 1,
       .shortest = kMs(50),
       .longest = kMs(4000),
       .window = kMs(6000),
       .other_layouts = 700},
  };
  return *themes;
}

TaskId DrawTarget(const Shape& shape, Random& random) {
  const uint64_t kind = random.Below(10);
  if (kind < 3) return {"chief", 0};
  if (kind < 6) {
    return {"ps", static_cast<int>(random.Below(shape.ps))};
  }
  return {"worker", static_cast<int>(random.Below(shape.workers))};
}

Kind DrawKind(const Shares& shares, Random& random) {
  uint64_t choice = random.Below(100);
  for (const auto& [kind, share] : shares) {
    if (choice < share) return kind;
    choice -= share;
  }
  return shares.back().first;
}

Fault DrawFault(const Shape& shape, absl::Duration last, Random& random) {
  Fault fault;
  fault.kind = DrawKind(AnyKind(), random);
  fault.target = DrawTarget(shape, random);
  fault.at = random.Between(absl::ZeroDuration(), last);
  fault.length = random.Chance(700)
                     ? random.Between(absl::Milliseconds(50), absl::Seconds(4))
                     : random.Between(absl::Seconds(4), kLongest);
  // Longer than keepalive now and then.
  if (random.Chance(50)) fault.length += absl::Seconds(20);
  fault.amount = fault.kind == Kind::kLoss ? random.Between(50, 500)
                                           : random.Between(40, 90);
  return fault;
}

// Changes `shape` to what the theme needs.
void Fit(const Theme& theme, Shape& shape) {
  // The first theme and the last are of all modes.
  if (theme.mode != Shape::Mode::kAsynchronous) shape.mode = theme.mode;
  shape.workers = std::clamp(shape.workers, theme.min_workers, 4);
  shape.ps = std::max(shape.ps, theme.min_ps);
  shape.replicas = std::clamp(shape.replicas, 1, shape.workers + 1);
}

// Faults of one worker, one ps and the chief within the theme's window.
std::vector<Fault> DrawFaults(const Theme& theme, const Shape& shape,
                              absl::Duration last, Random& random) {
  const TaskId worker = {"worker",
                         static_cast<int>(random.Below(shape.workers))};
  const TaskId ps = {"ps", static_cast<int>(random.Below(shape.ps))};
  const absl::Duration begin = random.Between(absl::ZeroDuration(), last);
  std::vector<Fault> faults(random.Between(2, 6));
  for (Fault& fault : faults) {
    const uint64_t kind = random.Below(10);
    fault.target = kind < theme.chief              ? TaskId{"chief", 0}
                   : kind < theme.chief + theme.ps ? ps
                                                   : worker;
    fault.kind = DrawKind(theme.kinds, random);
    fault.at = begin + random.Between(absl::ZeroDuration(), theme.window);
    fault.length = random.Between(theme.shortest, theme.longest);
    if (fault.kind == Kind::kLoss) fault.amount = random.Between(50, 500);
  }
  return faults;
}

// A ps with a standby, which is told or made to end, whose host and chief meet
// faults about then, in any order.
std::vector<Fault> DrawFailover(const Shape& shape, absl::Duration last,
                                Random& random) {
  static const Shares* const kinds =
      new Shares{{Kind::kKill, 42},         {Kind::kStop, 12},
                 {Kind::kCutFromChief, 10}, {Kind::kCutFromAll, 8},
                 {Kind::kLoseMachine, 8},   {Kind::kTerminate, 6},
                 {Kind::kReplace, 6},       {Kind::kRefuse, 8}};
  const int victim = static_cast<int>(random.Below(shape.ps));
  const TaskId host = {"ps", (victim + 1) % shape.ps};
  const bool is_for_good = random.Chance(400);
  const absl::Duration begin = random.Between(absl::Seconds(1), last);
  std::vector<Fault> faults(random.Between(1, 5));
  for (Fault& fault : faults) {
    const uint64_t whom = random.Below(10);
    fault.target = whom < 4                   ? TaskId{"ps", victim}
                   : whom < 6 && !is_for_good ? host
                   : whom < 9                 ? TaskId{"chief", 0}
                                              : TaskId{"worker", 0};
    fault.kind = DrawKind(*kinds, random);
    fault.at = begin + random.Between(absl::ZeroDuration(), absl::Seconds(8));
    fault.length =
        random.Chance(600)
            ? random.Between(absl::Milliseconds(50), absl::Seconds(3))
            : random.Between(absl::Seconds(3), kLongest);
  }
  if (!is_for_good) return faults;
  // Nothing else loses what then is the only copy of the shard.
  std::erase_if(faults,
                [](const Fault& fault) { return fault.target.role == "ps"; });
  if (random.Chance(400)) {
    faults.push_back(
        {.at = begin + random.Between(absl::Seconds(2), absl::Seconds(9)),
         .kind = Kind::kRefuse,
         .target = host,
         .length = random.Between(absl::Milliseconds(50), absl::Seconds(15))});
  }
  faults.push_back({.at = begin + absl::Seconds(2),
                    .kind = Kind::kKill,
                    .target = {"ps", victim},
                    .length = absl::Seconds(1),
                    .for_good = true});
  return faults;
}

// Each chief's job goes on from the one before it. `other_layouts` is the share
// of successors with another partitioner, in thousandths.
void DrawJobs(uint64_t other_layouts, std::vector<Fault>& faults,
              Random& random) {
  JobChoice job;
  for (Fault& fault : faults) {
    if (fault.target.role != "chief" || fault.kind >= Kind::kLoss) continue;
    if (fault.kind <= Kind::kTerminate || fault.kind == Kind::kReplace) {
      if (random.Chance(150)) ++job.hyperparameters;
      if (random.Chance(other_layouts)) ++job.partitioner;
    }
    fault.job = job;
  }
}

std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Milliseconds(duration) / 1000.0, " s");
}

}  // namespace

std::string Shape::ToString() const {
  const std::string consistency =
      mode == Mode::kGroup
          ? absl::StrCat("a group with ", replicas, " replicas, ", devices,
                         " at once in each worker, the chief ",
                         chief_beside ? "beside worker/0" : "apart",
                         ", summed by ", NameOf(all_reduce))
      : mode == Mode::kAsynchronous ? "asynchronous"
      : mode == Mode::kBoundedStaleness
          ? absl::StrCat("staleness bounded by ", bound)
          : absl::StrCat("synchronous with ", replicas, " replicas and ",
                         backups, " backups");
  return absl::StrCat(
      workers, " workers",
      late > absl::ZeroDuration()
          ? absl::StrCat(" that come within ", Seconds(late))
          : "",
      ", ", ps, replicates ? " ps with standbys, " : " ps, ", consistency, ", ",
      steps, " steps",
      epochs > 0 ? absl::StrCat(" in ", epochs, " epochs") : "", " of ",
      Seconds(compute), ", ", overlap, " in flight, a checkpoint every ",
      checkpoint_every, " steps, ", max_to_keep, " kept",
      growth > 0 ? absl::StrCat(", a set that grows by up to ", growth,
                                " batches at a time")
                 : "",
      evaluation > absl::ZeroDuration()
          ? absl::StrCat(", evaluated in ", Seconds(evaluation),
                         " each, patience ", patience,
                         max_lag < 0 ? "" : absl::StrCat(", max_lag ", max_lag))
          : "",
      loss > 0 ? absl::StrCat(", ", loss, " in 1,000 calls lost") : "");
}

std::string Fault::ToString() const {
  std::string line = at_point > 0 ? absl::StrCat("at point ", at_point, ": ")
                                  : absl::StrCat("at ", Seconds(at), ": ");
  if (kind < Kind::kLoss) absl::StrAppend(&line, target.ToString(), " ");
  absl::StrAppend(&line, NameOf(kind));
  if (kind == Kind::kSlowClock) {
    return absl::StrCat(line, ", at ", amount, " % of the speed");
  }
  if (kind == Kind::kStopAll) {
    absl::StrAppend(&line, " within ", amount, " ms, and start again");
  }
  if (kind == Kind::kLoss) absl::StrAppend(&line, " (", amount, " in 1,000)");
  if (kind == Kind::kPart)
    absl::StrAppend(&line, " (workers of the bits ", amount, ")");
  if (kind == Kind::kFlip)
    absl::StrAppend(&line, " (each message ", amount, ")");
  if (for_good) return absl::StrCat(line, " for good");
  if (kind != Kind::kDamage) absl::StrAppend(&line, " for ", Seconds(length));
  if (target.role == "chief" && !(job == JobChoice())) {
    absl::StrAppend(&line, ", the next one with hyperparameters ",
                    job.hyperparameters, " and partitioner ", job.partitioner);
  }
  return line;
}

absl::Duration Schedule::End() const {
  absl::Duration end;
  for (const Fault& fault : faults) {
    end = std::max(end, fault.at + fault.length);
  }
  return end;
}

bool Schedule::Has(Kind kind, const std::string& role) const {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.kind == kind && (role.empty() || fault.target.role == role);
  });
}

bool Schedule::Hits(const std::string& role) const {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.kind < Kind::kLoss && fault.target.role == role;
  });
}

Fault DrawStop(absl::Duration last, Random& random) {
  constexpr int64_t kWindows[] = {0, 100, 1000, 6000};
  Fault fault;
  fault.kind = Kind::kStopAll;
  fault.at = random.Between(absl::ZeroDuration(), last);
  fault.amount = kWindows[random.Below(4)];
  fault.length = absl::Milliseconds(fault.amount) + absl::Seconds(5);
  return fault;
}

bool Schedule::IsCalm() const {
  return shape.loss == 0 &&
         std::all_of(faults.begin(), faults.end(), [](const Fault& fault) {
           return fault.kind == Kind::kStopAll;
         });
}

bool Schedule::ChangesJob() const {
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return !(fault.job == JobChoice());
  });
}

std::string Schedule::ToString() const {
  std::string text = absl::StrCat("seed ", seed, ": ", shape.ToString(), "\n");
  for (const Fault& fault : faults) {
    absl::StrAppend(&text, "  ", fault.ToString(), "\n");
  }
  return text;
}

Schedule DrawSchedule(uint64_t seed) {
  Random random(seed);
  Schedule schedule;
  schedule.seed = seed;
  schedule.shape = DrawShape(seed, random);
  Shape& shape = schedule.shape;
  const bool is_of_standbys = seed % kReplicatesEvery == 2;
  if (is_of_standbys) {
    if (shape.mode == Shape::Mode::kSynchronous) {
      shape.mode = Shape::Mode::kAsynchronous;
    }
    shape.replicates = true;
    shape.ps = static_cast<int>(random.Between(2, 3));
    shape.workers = std::min(shape.workers, 4);
    shape.steps *= 3;
    shape.loss = 0;
    // Batches that are done twice, as a chief is lost with a ps, are judged by
    // the job's end.
    shape.evaluation = absl::ZeroDuration();
  }
  const bool has_theme =
      !is_of_standbys && shape.workers <= 8 && random.Chance(kThemed);
  const Theme& theme = Themes()[random.Below(Themes().size())];
  if (has_theme) Fit(theme, shape);
  // Not drawn, as max_lag.
  if (seed % kGrowsEvery == 4 && shape.epochs == 0 &&
      shape.mode < Shape::Mode::kSynchronous) {
    shape.growth = 1 + static_cast<int64_t>(seed / kGrowsEvery % 4);
  }
  const absl::Duration last =
      absl::Seconds(3) + shape.compute * shape.steps / shape.workers * 1.3;
  if (seed % kStopEvery == kStopEvery - 1) {
    schedule.faults = {DrawStop(last, random)};
    shape.loss = 0;
  } else if (is_of_standbys) {
    schedule.faults = DrawFailover(shape, last, random);
  } else if (has_theme) {
    schedule.faults = DrawFaults(theme, shape, last, random);
  } else {
    const int64_t faults = random.Chance(150) ? 0 : random.Between(1, 6);
    for (int64_t i = 0; i < faults; ++i) {
      schedule.faults.push_back(DrawFault(shape, last, random));
    }
  }
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  const uint64_t other_layouts = is_of_standbys ? 0
                                 : has_theme    ? theme.other_layouts
                                                : kOtherLayouts;
  DrawJobs(other_layouts, schedule.faults, random);
  return schedule;
}

}  // namespace parasol::simulation
