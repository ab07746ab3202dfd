#include "coordinator/watch/worker_paces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// Batches over which a pace is measured, however long they take.
constexpr double kBatches = 4;
constexpr double kRecentBatches = 2;
// The share of a batch, on average, that lies within the measured time, if the
// batch began before it or ends after it.
constexpr double kHalf = .5;
// A part of less than this share of the time is not named.
constexpr double kNamedShare = .05;
// No process runs for longer.
constexpr int64_t kMaxSeconds = int64_t{1} << 32;

enum Part { kInput, kPull, kCompute, kPush, kWait, kStoodStill, kNumParts };

constexpr const char* kPartNames[] = {"input", "pull", "compute",
                                      "push",  "wait", "standing still"};

std::optional<double> SecondsOf(const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.seconds() > kMaxSeconds ||
      duration.nanos() < 0) {
    return std::nullopt;
  }
  return SecondsIn(duration);
}

// The times in the order of Part; nullopt if one makes no sense.
std::optional<std::vector<double>> PartsOf(const wire::StepTimes& times) {
  std::vector<double> parts;
  for (const auto* part :
       {&times.input(), &times.pull(), &times.compute(), &times.push(),
        &times.wait(), &times.stood_still()}) {
    const std::optional<double> seconds = SecondsOf(*part);
    if (!seconds) return std::nullopt;
    parts.push_back(*seconds);
  }
  return parts;
}

bool MakesSense(const wire::WorkerTotals& totals) {
  return PartsOf(totals.times()).has_value() && SecondsOf(totals.work()) &&
         totals.steps() >= 0 && totals.batches() >= 0;
}

wire::StepTimes TimesOf(const std::vector<double>& parts) {
  const auto part = [&](Part which) {
    return ToProto(absl::Seconds(parts[which]));
  };
  wire::StepTimes times;
  *times.mutable_input() = part(kInput);
  *times.mutable_pull() = part(kPull);
  *times.mutable_compute() = part(kCompute);
  *times.mutable_push() = part(kPush);
  *times.mutable_wait() = part(kWait);
  *times.mutable_stood_still() = part(kStoodStill);
  return times;
}

// "12.3ms", "2.4s".
std::string Time(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3g s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g us", seconds * 1e6);
}

std::vector<double> Difference(const std::vector<double>& a,
                               const std::vector<double>& b) {
  std::vector<double> difference(kNumParts);
  for (int i = 0; i < kNumParts; ++i) difference[i] = std::max(0., a[i] - b[i]);
  return difference;
}

// The time between two samples in which a worker ran while it waited for values
// and acknowledgements.
double Awake(const std::vector<double>& base, const std::vector<double>& last) {
  double awake = base[kStoodStill] - last[kStoodStill];
  for (const Part part : {kPull, kPush}) awake += last[part] - base[part];
  return std::max(0., awake);
}

// The parts of a worker's own time as shares of it, the largest first.
std::string Shares(std::vector<double> parts, bool in_step) {
  // The times of waits include the time in which the process stood still.
  const double waits = parts[kPull] + parts[kPush];
  const double awake =
      waits > 0 ? std::max(0., 1 - parts[kStoodStill] / waits) : 0;
  parts[kPull] = in_step ? 0 : parts[kPull] * awake;
  parts[kPush] = in_step ? 0 : parts[kPush] * awake;
  parts[kWait] = 0;
  double all = 0;
  for (const double part : parts) all += part;
  std::vector<std::pair<double, const char*>> named;
  for (int i = 0; i < kNumParts; ++i) {
    if (all > 0 && parts[i] / all >= kNamedShare) {
      named.emplace_back(-parts[i] / all, kPartNames[i]);
    }
  }
  std::stable_sort(
      named.begin(), named.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return absl::StrJoin(named, ", ", [](std::string* out, const auto& part) {
    absl::StrAppendFormat(out, "%s %.0f %%", part.second, -100 * part.first);
  });
}

}  // namespace

WorkerPaces::Sample WorkerPaces::SampleOf(const wire::WorkerTotals& totals,
                                          absl::Time now) const {
  Sample sample = {.time = now,
                   .steps = static_cast<double>(totals.steps()),
                   .batches = static_cast<double>(totals.batches()),
                   .own = *SecondsOf(totals.work()),
                   .parts = *PartsOf(totals.times())};
  if (!in_step_) {
    sample.own = sample.parts[kInput] + sample.parts[kPull] +
                 sample.parts[kCompute] + sample.parts[kPush];
  }
  return sample;
}

void WorkerPaces::Report(int worker, uint64_t incarnation,
                         const wire::WorkerTotals& totals, absl::Time now) {
  if (!MakesSense(totals)) return;
  Worker& entry = workers_[worker];
  if (entry.incarnation != incarnation) {
    entry = {.incarnation = incarnation, .since = now};
  }
  Sample sample = SampleOf(totals, now);
  entry.is_warm |= sample.batches >= 2 || now - entry.since >= limits_.warm_up;
  if (!entry.is_warm) return;
  if (!entry.samples.empty()) {
    const Sample& last = entry.samples.back();
    if (sample.batches < last.batches || sample.own < last.own ||
        sample.steps < last.steps) {
      return;
    }
  }
  entry.samples.push_back(std::move(sample));
  Prune(entry);
}

void WorkerPaces::StartOver() {
  for (auto& [index, worker] : workers_) {
    worker.samples.clear();
    worker.changing.reset();
  }
}

double WorkerPaces::Own(const Sample& base, const Sample& last) const {
  const double own = last.own - base.own;
  if (!in_step_ || !messages_) return own;
  const double stood_still = last.parts[kStoodStill] - base.parts[kStoodStill];
  const double awake = Awake(base.parts, last.parts);
  if (stood_still <= 0 || awake <= 0) return own;
  // The times are of one device, `own` is of all.
  const double steps = last.steps - base.steps + kHalf;
  const double devices =
      std::max(1., (last.batches - base.batches) / std::max(1., steps));
  const double costs = *messages_ * stood_still / awake * steps;
  return std::max(0., own - devices * std::max(0., stood_still - costs));
}

std::optional<double> WorkerPaces::Messages() const {
  std::optional<double> least;
  for (const auto& [index, worker] : workers_) {
    if (!IsMeasured(worker)) continue;
    const Sample& base = Base(worker, limits_.window, kBatches);
    const Sample& last = worker.samples.back();
    const double steps = last.steps - base.steps;
    if (steps < 1) continue;
    const double awake = Awake(base.parts, last.parts) / steps;
    if (!least || awake < *least) least = awake;
  }
  return least;
}

const WorkerPaces::Sample& WorkerPaces::Base(const Worker& worker,
                                             absl::Duration window,
                                             double batches) {
  const Sample& last = worker.samples.back();
  auto base = worker.samples.rbegin();
  for (; base != std::prev(worker.samples.rend()); ++base) {
    if (last.time - base->time >= window &&
        last.batches - base->batches >= batches) {
      break;
    }
  }
  return *base;
}

// Keeps the samples from Base() of the longest window on.
void WorkerPaces::Prune(Worker& worker) const {
  std::deque<Sample>& samples = worker.samples;
  const auto is_base = [&](const Sample& sample) {
    return samples.back().time - sample.time >= limits_.window &&
           samples.back().batches - sample.batches >= kBatches;
  };
  while (samples.size() > kMaxSamples ||
         (samples.size() > 2 && is_base(samples[1]))) {
    samples.pop_front();
  }
}

bool WorkerPaces::IsMeasured(const Worker& worker) const {
  return worker.samples.size() >= 2 &&
         worker.samples.back().time - worker.samples.front().time >=
             limits_.recent;
}

std::optional<double> WorkerPaces::Typical(const Worker& worker) const {
  if (!IsMeasured(worker)) return std::nullopt;
  const Sample& base = Base(worker, limits_.window, kBatches);
  const Sample& last = worker.samples.back();
  const double batches = last.batches - base.batches;
  if (batches < 1) return std::nullopt;
  // Its batch in progress may have taken longer than all before it.
  const Sample& window = Base(worker, limits_.window, 0);
  return std::max(Own(base, last) / batches,
                  Own(window, last) / (last.batches - window.batches + kHalf));
}

bool WorkerPaces::IsSlow(const Worker& worker, double median) const {
  const Sample& last = worker.samples.back();
  // Returns the time of a batch, or what it is at least, over `median`.
  const auto ratio = [&](const Sample& base) {
    return Own(base, last) / (last.batches - base.batches + kHalf) / median;
  };
  const Sample& window = Base(worker, limits_.window, 0);
  const double slowness =
      std::max(ratio(window), ratio(Base(worker, limits_.window, kBatches)));
  const double recently =
      std::max(ratio(Base(worker, limits_.recent, 0)),
               ratio(Base(worker, limits_.recent, kRecentBatches)));
  const double elapsed = absl::ToDoubleSeconds(last.time - window.time);
  const double lost =
      Own(window, last) - median * (last.batches - window.batches + kHalf);
  const double limit = worker.is_slow ? limits_.quick : limits_.slow;
  return slowness > limit && recently > limits_.quick &&
         lost >= limits_.min_loss / limits_.slow * limit * elapsed;
}

void WorkerPaces::Judge(absl::Time now) {
  if (now < next_) return;
  next_ = now + kInterval;
  messages_ = Messages();
  std::map<int, double> typical;
  std::vector<double> sorted;
  for (const auto& [index, worker] : workers_) {
    const std::optional<double> time = Typical(worker);
    if (!time) continue;
    typical[index] = *time;
    sorted.push_back(*time);
  }
  std::sort(sorted.begin(), sorted.end());
  for (auto& [index, worker] : workers_) {
    const auto own = typical.find(index);
    const bool counts = own != typical.end();
    const size_t others = sorted.size() - (counts ? 1 : 0);
    std::optional<double> median;
    if (others > 0) {
      // The lower median of what is left without its own.
      size_t middle = (others - 1) / 2;
      if (counts && sorted[middle] >= own->second) ++middle;
      if (sorted[middle] > 0) median = sorted[middle];
    }
    Measure(worker, median, now);
  }
}

void WorkerPaces::Measure(Worker& worker, std::optional<double> median,
                          absl::Time now) {
  if (worker.samples.size() < 2) return;
  const Sample& last = worker.samples.back();
  const Sample& base = Base(worker, limits_.window, 1);
  const double elapsed = absl::ToDoubleSeconds(now - base.time);
  const double steps = last.steps - base.steps;
  worker.pace.Clear();
  if (elapsed > 0) worker.pace.set_steps_per_second(steps / elapsed);
  if (steps >= 1) {
    std::vector<double> parts = Difference(last.parts, base.parts);
    for (double& part : parts) part /= steps;
    *worker.pace.mutable_step() = TimesOf(parts);
  }
  const double batch =
      Own(base, last) / std::max(kHalf, last.batches - base.batches);
  *worker.pace.mutable_batch() = ToProto(absl::Seconds(batch));
  if (median) worker.pace.set_slowness(batch / *median);
  const bool is_slow = IsMeasured(worker) && median && IsSlow(worker, *median);
  if (is_slow == worker.is_slow) {
    worker.changing.reset();
  } else if (!worker.changing) {
    worker.changing = now;
  } else if (now - *worker.changing >= limits_.hold) {
    worker.is_slow = is_slow;
    worker.changing.reset();
  }
  if (!worker.is_slow) worker.why.clear();
  // Numbers of a worker that is about to be quick again say nothing.
  if (worker.is_slow && is_slow) worker.why = Why(worker, *median);
}

std::string WorkerPaces::Why(const Worker& worker, double median) const {
  const Sample& base = Base(worker, limits_.window, 1);
  return absl::StrFormat(
      "%s a batch, %.1f times the others' %s (%s)",
      Time(SecondsIn(worker.pace.batch())), worker.pace.slowness(),
      Time(median),
      Shares(Difference(worker.samples.back().parts, base.parts), in_step_));
}

void WorkerPaces::Describe(int worker, absl::Duration silence,
                           wire::TaskStatus& status) const {
  const auto it = workers_.find(worker);
  if (it != workers_.end() && !it->second.samples.empty()) {
    *status.mutable_pace() = it->second.pace;
    status.set_slow(it->second.why);
  }
  if (silence >= limits_.silence) {
    status.set_slow(absl::StrCat(
        "not heard for ",
        absl::FormatDuration(absl::Floor(silence, absl::Seconds(1)))));
  }
}

}  // namespace parasol
