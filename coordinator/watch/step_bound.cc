#include "coordinator/watch/step_bound.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/progress/task_notes.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// A worker that needs so many times the others' time is named.
constexpr double kSlow = 1.8;
// A ps that is waited for so many times as long as the others.
constexpr double kSlowPs = 1.7;
// Share of a worker's time that is worth a line.
constexpr double kWorthALine = .2;
// Share of the rows that are pushed from which on a row is hot.
constexpr double kHotShare = .3;
// Number of busy threads from which on a ps has much to do.
constexpr double kBusy = .5;

enum StepPartOf { kOfInput, kOfPs, kOfCompute, kOfWait, kOfStandstill, kParts };

// The times of a worker's step, in seconds.
struct WorkerStep {
  std::string name;
  const wire::TaskStatus* task = nullptr;
  std::array<double, kParts> parts = {};

  double all() const {
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum;
  }
  double share(int part) const { return all() > 0 ? parts[part] / all() : 0; }
};

// "12.3 ms", "2.4 s".
std::string Shown(double seconds) {
  return seconds >= 1 ? absl::StrFormat("%.3g s", seconds)
                      : absl::StrFormat("%.3g ms", seconds * 1e3);
}

std::string Percent(double share) {
  return absl::StrFormat("%.0f %%", 100 * share);
}

std::string Rate(double bytes) {
  return absl::StrFormat("%.3g MB/s", bytes / 1e6);
}

wire::Finding Make(wire::Finding::Kind kind, const std::string& task,
                   std::string text) {
  wire::Finding finding;
  finding.set_kind(kind);
  finding.set_task(task);
  finding.set_text(std::move(text));
  return finding;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + (values.size() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<WorkerStep> StepsOf(const wire::JobStatus& status) {
  std::vector<WorkerStep> steps;
  for (const wire::TaskStatus& task : status.task()) {
    if (task.task().role() != "worker" || !task.alive() || !task.has_pace()) {
      continue;
    }
    const wire::StepTimes& times = task.pace().step();
    WorkerStep step = {.name = NameOfTask(task), .task = &task};
    const double stood_still = SecondsIn(times.stood_still());
    // It lies in the waits.
    const double waits = SecondsIn(times.pull()) + SecondsIn(times.push());
    const double in_waits = std::min(stood_still, waits);
    step.parts[kOfInput] = SecondsIn(times.input());
    step.parts[kOfPs] = waits - in_waits;
    step.parts[kOfCompute] = SecondsIn(times.compute());
    step.parts[kOfWait] = SecondsIn(times.wait());
    step.parts[kOfStandstill] = in_waits;
    if (step.all() > 0) steps.push_back(std::move(step));
  }
  return steps;
}

// How long the ps are waited for, and what they do.
class PsView {
 public:
  explicit PsView(const wire::JobStatus& status) {
    for (const wire::TaskStatus& task : status.task()) {
      if (task.task().role() == "ps") loads_[NameOfTask(task)] = task.ps_load();
      reporters_ += task.ps_wait_size() > 0;
      for (const wire::PsWait& wait : task.ps_wait()) {
        shares_[wait.ps()][NameOfTask(task)] = wait.share();
      }
    }
  }

  // Returns the share of the time in which a worker waits for a ps.
  double Share(const std::string& worker, const std::string& ps) const {
    const auto by_worker = shares_.find(ps);
    if (by_worker == shares_.end()) return 0;
    const auto share = by_worker->second.find(worker);
    return share == by_worker->second.end() ? 0 : share->second;
  }
  // Returns the median of it over the other workers; 0 if there are none.
  double OthersShare(const std::string& worker, const std::string& ps) const {
    std::vector<double> shares;
    const auto by_worker = shares_.find(ps);
    if (by_worker == shares_.end()) return 0;
    for (const auto& [each, share] : by_worker->second) {
      if (each != worker) shares.push_back(share);
    }
    // A worker names the ps that it waits for most: the others hardly.
    const bool is_among_them = by_worker->second.contains(worker);
    shares.resize(std::max(shares.size(), reporters_ - is_among_them));
    return Median(std::move(shares));
  }
  double MeanShare(const std::string& ps) const {
    const auto by_worker = shares_.find(ps);
    if (by_worker == shares_.end()) return 0;
    double sum = 0;
    for (const auto& [worker, share] : by_worker->second) sum += share;
    return sum / static_cast<double>(reporters_);
  }
  const std::map<std::string, wire::PsLoad>& loads() const { return loads_; }
  double Busy(const std::string& ps) const {
    return loads_.at(ps).busy_threads();
  }

  // Returns the ps that this worker waits for longer than the others do.
  std::optional<std::string> WorstOf(const std::string& worker) const {
    std::optional<std::string> worst;
    double most = 0;
    for (const auto& [ps, load] : loads_) {
      const double more = Share(worker, ps) - OthersShare(worker, ps);
      if (more <= most) continue;
      most = more;
      worst = ps;
    }
    return worst;
  }

  // Returns the ps with a much larger value than the others; nullopt if there
  // is none.
  template <typename Value>
  std::optional<std::string> Outlier(Value value, double least) const {
    std::optional<std::string> first;
    std::vector<double> others;
    for (const auto& [ps, load] : loads_) {
      if (first && value(ps) <= value(*first)) continue;
      first = ps;
    }
    if (!first || value(*first) < least) return std::nullopt;
    for (const auto& [ps, load] : loads_) {
      if (ps != *first) others.push_back(value(ps));
    }
    if (others.empty()) return first;
    if (value(*first) < kSlowPs * Median(others)) return std::nullopt;
    return first;
  }

 private:
  std::map<std::string, wire::PsLoad> loads_;
  std::map<std::string, std::map<std::string, double>> shares_;  // ps, worker
  size_t reporters_ = 0;  // workers that say which ps they wait for
};

// The link of a worker that waits for its ps longer than the others do.
wire::Finding SlowLink(const WorkerStep& step, const PsView& ps,
                       const std::string& figures) {
  const std::optional<std::string> worst = ps.WorstOf(step.name);
  if (!worst) {
    return Make(wire::Finding::LINK, step.name,
                absl::StrCat("messages between ", step.name,
                             " and its ps take long: ", figures));
  }
  return Make(wire::Finding::LINK, step.name,
              absl::StrCat("a slow link between ", step.name, " and ", *worst,
                           ": ", step.name, " waits for it ",
                           Percent(ps.Share(step.name, *worst)),
                           " of its time, other workers ",
                           Percent(ps.OthersShare(step.name, *worst)), " (",
                           figures, ")"));
}

// A worker that needs much more time than the median of the others, and the
// part in which it does.
std::optional<wire::Finding> SlowWorker(const std::vector<WorkerStep>& steps,
                                        size_t worker, const PsView& ps,
                                        bool in_step) {
  const WorkerStep& step = steps[worker];
  std::array<double, kParts> usual = {};
  double own = 0;
  double usual_own = 0;
  int most = kOfInput;
  for (int part = 0; part < kParts; ++part) {
    std::vector<double> others;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i != worker) others.push_back(steps[i].parts[part]);
    }
    usual[part] = Median(std::move(others));
    // In step a worker waits at its ps for others, and otherwise for steps.
    if (part == kOfWait || (in_step && part == kOfPs)) continue;
    own += step.parts[part];
    usual_own += usual[part];
    if (step.parts[part] - usual[part] > step.parts[most] - usual[most]) {
      most = part;
    }
  }
  const bool is_slow =
      !step.task->slow().empty() || step.task->pace().slowness() > kSlow;
  if (!is_slow || own < kSlow * usual_own) return std::nullopt;
  const double more = step.parts[most] - usual[most];
  if (more < kWorthALine * step.all()) return std::nullopt;
  const std::string figures =
      absl::StrCat(Shown(step.parts[most]), " of a step's ", Shown(step.all()),
                   ", other workers ", Shown(usual[most]));
  switch (most) {
    case kOfInput:
      return Make(
          wire::Finding::INPUT, step.name,
          absl::StrCat("the input of ", step.name, ": it waits for batches ",
                       figures, ": a slow disk, or too little decoding"));
    case kOfCompute:
      return Make(
          wire::Finding::PROCESSOR, step.name,
          absl::StrCat("the processor of ", step.name, ": its passes take ",
                       figures, ": a quota, or others on its machine"));
    case kOfStandstill:
      return Make(wire::Finding::PROCESSOR, step.name,
                  absl::StrCat("the machine of ", step.name,
                               ": the process stands still ", figures,
                               ": paging, a quota, or others on its machine"));
    default:
      return SlowLink(step, ps, figures);
  }
}

// A worker whose gradients come last in synchronous steps although it needs no
// more time than others.
std::optional<wire::Finding> LateWorker(const PsView& ps) {
  std::optional<std::string> at;
  for (const auto& [name, load] : ps.loads()) {
    if (load.late_worker().empty()) continue;
    if (!at || load.late_share() > ps.loads().at(*at).late_share()) at = name;
  }
  if (!at || ps.loads().at(*at).late_share() < kWorthALine) return std::nullopt;
  const wire::PsLoad& worst = ps.loads().at(*at);
  bool everywhere = true;
  for (const auto& [name, load] : ps.loads()) {
    everywhere &= load.late_worker() == worst.late_worker() &&
                  2 * load.late_share() > worst.late_share();
  }
  if (everywhere) {
    return Make(wire::Finding::WORKER, worst.late_worker(),
                absl::StrCat("all wait for ", worst.late_worker(),
                             ": its gradients come last at every ps, ",
                             Percent(worst.late_share()),
                             " of the time: its work, or its network"));
  }
  return Make(wire::Finding::LINK, worst.late_worker(),
              absl::StrCat("a slow link between ", worst.late_worker(), " and ",
                           *at, ": the gradients of ", worst.late_worker(),
                           " come last there, and are awaited ",
                           Percent(worst.late_share()), " of the time"));
}

std::string HotRowText(const wire::HotRow& hot) {
  return absl::StrFormat("row %d of table %s is %s of the rows pushed to it",
                         hot.row(), hot.table(), Percent(hot.share()));
}

// The ps that workers wait for most of their time.
wire::Finding PsBound(double share, const PsView& ps) {
  if (ps.loads().empty()) {
    return Make(
        wire::Finding::LINK, "",
        absl::StrCat("workers wait for each other's sums ", Percent(share),
                     " of the time: their network, or a worker that "
                     "is late"));
  }
  const std::string front = absl::StrCat("workers wait for their ps ",
                                         Percent(share), " of the time: ");
  std::optional<std::string> worst = ps.Outlier(
      [&](const std::string& name) { return ps.MeanShare(name); }, kWorthALine);
  if (!worst) {
    worst = ps.Outlier([&](const std::string& name) { return ps.Busy(name); },
                       kWorthALine);
  }
  double busy = 0;
  double bytes = 0;
  for (const auto& [name, load] : ps.loads()) {
    busy = std::max(busy, load.busy_threads());
    bytes += load.push_bytes_per_second() + load.pull_bytes_per_second();
  }
  if (!worst) {
    if (busy >= kBusy) {
      return Make(wire::Finding::PS, "",
                  absl::StrCat(front, "all ps have much to do, up to ",
                               absl::StrFormat("%.2g", busy), " threads, ",
                               Rate(bytes), ": more ps, or larger batches"));
    }
    return Make(wire::Finding::LINK, "",
                absl::StrCat(front, "messages between workers and ps, ",
                             Rate(bytes), ", take long; the ps are not busy"));
  }
  const wire::PsLoad& load = ps.loads().at(*worst);
  const std::string figures = absl::StrCat(
      absl::StrFormat("%.2g", load.busy_threads()), " threads busy, ",
      Rate(load.push_bytes_per_second() + load.pull_bytes_per_second()));
  if (load.hot_row().share() >= kHotShare) {
    return Make(wire::Finding::HOT_ROW, *worst,
                absl::StrCat("one hot row on ", *worst, ": ",
                             HotRowText(load.hot_row()), "; ", front, figures));
  }
  if (load.busy_threads() >= kBusy || ps.loads().size() == 1) {
    return Make(wire::Finding::PS, *worst,
                absl::StrCat(front, "above all for ", *worst,
                             ", which has the most to do: ", figures));
  }
  return Make(wire::Finding::LINK, *worst,
              absl::StrCat(front, "above all for ", *worst,
                           ", which is not busy: its network (", figures, ")"));
}

wire::Finding MostOfAll(const std::vector<WorkerStep>& steps, const PsView& ps,
                        const wire::JobStatus& status) {
  std::array<double, kParts> shares = {};
  for (const WorkerStep& step : steps) {
    for (int part = 0; part < kParts; ++part) {
      shares[part] += step.share(part) / static_cast<double>(steps.size());
    }
  }
  const auto most = std::max_element(shares.begin(), shares.end());
  switch (most - shares.begin()) {
    case kOfInput: {
      const WorkerStep& first = *std::max_element(
          steps.begin(), steps.end(), [](const auto& a, const auto& b) {
            return a.parts[kOfInput] < b.parts[kOfInput];
          });
      return Make(wire::Finding::INPUT, first.name,
                  absl::StrCat("input: workers wait for batches ",
                               Percent(*most), " of the time, ", first.name,
                               " longest, ", Shown(first.parts[kOfInput]),
                               " of a step's ", Shown(first.all())));
    }
    case kOfPs:
      return PsBound(*most, ps);
    case kOfWait:
      if (status.due_evaluations() > 0) {
        return Make(
            wire::Finding::EVALUATION, "evaluator/0",
            absl::StrCat("the evaluator's lag: workers wait for steps ",
                         Percent(*most), " of the time while ",
                         status.due_evaluations(), " evaluations are due"));
      }
      return Make(wire::Finding::WORKER, "",
                  absl::StrCat("workers wait for steps to be granted ",
                               Percent(*most), " of the time"));
    case kOfStandstill:
      return Make(
          wire::Finding::PROCESSOR, "",
          absl::StrCat("the machines: workers stand still ", Percent(*most),
                       " of the time, without a processor"));
    default:
      return Make(wire::Finding::COMPUTE, "",
                  absl::StrCat("nobody, compute: passes take ", Percent(*most),
                               " of the workers' time"));
  }
}

}  // namespace

std::vector<wire::Finding> StepBounds(const wire::JobStatus& status) {
  const std::vector<WorkerStep> steps = StepsOf(status);
  if (steps.empty()) return {};
  const PsView ps(status);
  const bool in_step = status.num_replicas_in_sync() > 0;
  std::vector<std::pair<double, wire::Finding>> slow;
  for (size_t i = 0; i < steps.size() && steps.size() > 1; ++i) {
    std::optional<wire::Finding> finding = SlowWorker(steps, i, ps, in_step);
    if (!finding) continue;
    slow.emplace_back(-steps[i].task->pace().slowness(), *std::move(finding));
  }
  std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  std::vector<wire::Finding> findings;
  for (auto& [slowness, finding] : slow) {
    findings.push_back(std::move(finding));
  }
  if (in_step && findings.empty()) {
    if (std::optional<wire::Finding> late = LateWorker(ps)) {
      findings.push_back(*std::move(late));
    }
  }
  findings.push_back(MostOfAll(steps, ps, status));
  return findings;
}

}  // namespace parasol
