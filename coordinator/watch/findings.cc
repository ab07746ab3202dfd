#include "coordinator/watch/findings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cluster/progress/followed_text.h"
#include "cluster/progress/task_notes.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/watch/step_bound.h"

namespace parasol {
namespace {

using Kind = wire::Finding::Kind;

// Heartbeats come every second.
constexpr absl::Duration kSilent = absl::Milliseconds(2500);
// Time after which an operation, or an answer, is late.
constexpr absl::Duration kLate = absl::Seconds(2);
// Time for which a ps may write its part of a checkpoint while steps go on.
constexpr absl::Duration kLongWrite = absl::Seconds(10);
// Names in a line.
constexpr size_t kMaxNames = 4;
constexpr size_t kMaxFindings = 8;

// "3.2s".
std::string For(absl::Duration time) {
  return absl::FormatDuration(absl::Floor(time, time < absl::Seconds(10)
                                                    ? absl::Milliseconds(100)
                                                    : absl::Seconds(1)));
}

template <typename Names>
std::string List(const Names& names) {
  std::vector<std::string> shown(names.begin(), names.end());
  const size_t more = shown.size() > kMaxNames ? shown.size() - kMaxNames : 0;
  shown.resize(shown.size() - more);
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// Looks at one status.
class Look {
 public:
  explicit Look(const wire::JobStatus& status) : status_(status) {
    for (const wire::TaskStatus& task : status.task()) {
      const std::string name = NameOfTask(task);
      if (task.alive() && FromProto(task.silence()) >= kSilent) {
        silent_.insert(name);
      }
      if (task.ps_load().has_loading()) loading_.insert(name);
    }
  }

  std::vector<wire::Finding> Find() {
    if (status_.phase() == wire::COMPLETE) return {};
    if (status_.phase() == wire::FAILED) {
      Add(wire::Finding::FAILURE, "",
          absl::StrCat("the job has failed: ", status_.failure()));
      return std::move(findings_);
    }
    Stopped();
    Missing();
    Unreachable();
    Stuck();
    if (!status_.trouble().empty()) {
      Add(KindOfTrouble(), "",
          absl::StrCat(status_.trouble(), Since(status_.waited())));
    }
    Loading();
    Writing();
    Evaluation();
    Data();
    Absent();
    if (status_.phase() == wire::TRAINING && !status_.followed().has_waited()) {
      for (wire::Finding& finding : StepBounds(status_)) {
        findings_.push_back(std::move(finding));
      }
    }
    if (findings_.empty()) {
      Add(wire::Finding::KIND_UNSPECIFIED, "",
          status_.phase() == wire::TRAINING
              ? "nothing is known yet: no worker has reported its steps"
              : "nothing is amiss: the job is about to go on");
    }
    if (findings_.size() > kMaxFindings) findings_.resize(kMaxFindings);
    return std::move(findings_);
  }

 private:
  Kind KindOfTrouble() const {
    for (const wire::Finding& finding : status_.finding()) {
      if (finding.text() == status_.trouble()) return finding.kind();
    }
    return wire::Finding::CHECKPOINT;
  }

  void Add(Kind kind, const std::string& task, std::string text) {
    wire::Finding& finding = findings_.emplace_back();
    finding.set_kind(kind);
    finding.set_task(task);
    finding.set_text(std::move(text));
  }

  std::string Since(const google::protobuf::Duration& time) const {
    const absl::Duration waited = FromProto(time);
    return waited >= absl::Seconds(1) ? absl::StrCat(", for ", For(waited))
                                      : "";
  }

  // Returns the workers that have waited for this ps for long, and the longest
  // wait.
  std::pair<std::set<std::string>, absl::Duration> WaitersFor(
      const std::string& ps) const {
    std::pair<std::set<std::string>, absl::Duration> waiters;
    for (const wire::TaskStatus& task : status_.task()) {
      for (const wire::PsWait& wait : task.ps_wait()) {
        const absl::Duration since = FromProto(wait.since());
        if (wait.ps() != ps || !wait.has_since() || since < kLate) continue;
        waiters.first.insert(NameOfTask(task));
        waiters.second = std::max(waiters.second, since);
      }
    }
    return waiters;
  }
  // "; worker/0, worker/1 wait for it, for 3.1s".
  std::string WaitersText(const std::string& ps) const {
    const auto [waiters, longest] = WaitersFor(ps);
    if (waiters.empty()) return "";
    return absl::StrCat("; ", List(waiters),
                        waiters.size() == 1 ? " waits" : " wait",
                        " for it, for ", For(longest));
  }

  // The ps that stopped first: others may only wait for it.
  void Stopped() {
    std::vector<const wire::TaskStatus*> silent;
    for (const wire::TaskStatus& task : status_.task()) {
      if (silent_.contains(NameOfTask(task))) silent.push_back(&task);
    }
    std::stable_sort(silent.begin(), silent.end(),
                     [](const auto* a, const auto* b) {
                       const bool a_is_ps = a->task().role() == "ps";
                       const bool b_is_ps = b->task().role() == "ps";
                       if (a_is_ps != b_is_ps) return a_is_ps;
                       return FromProto(a->silence()) > FromProto(b->silence());
                     });
    for (const wire::TaskStatus* task : silent) {
      const std::string name = NameOfTask(*task);
      Add(wire::Finding::STOPPED, name,
          absl::StrCat("a stopped task, ", name, ": not heard for ",
                       For(FromProto(task->silence())),
                       ": its process is stopped, or cut off from the chief",
                       WaitersText(name)));
    }
  }

  void Missing() {
    if (status_.missing_task().empty()) return;
    Add(wire::Finding::MISSING, status_.missing_task(0),
        absl::StrCat("the job waits for ", List(status_.missing_task()),
                     ", which ",
                     status_.missing_task_size() == 1 ? "is" : "are",
                     " not there", Since(status_.waited())));
  }

  void Unreachable() {
    struct Away {
      std::vector<std::string> workers = {};
      std::string trouble = {};
      absl::Duration since = absl::ZeroDuration();
    };
    std::map<std::string, Away> away;  // key: the ps
    for (const wire::TaskStatus& task : status_.task()) {
      for (const wire::PsWait& wait : task.ps_wait()) {
        const absl::Duration since = FromProto(wait.since());
        const bool is_away = !wait.trouble().empty() && since >= kLate;
        if (!is_away || silent_.contains(wait.ps()) ||
            loading_.contains(wait.ps()) || !IsThere(wait.ps())) {
          continue;
        }
        Away& ps = away[wait.ps()];
        ps.workers.push_back(NameOfTask(task));
        if (since < ps.since) continue;
        ps.since = since;
        ps.trouble = wait.trouble();
      }
    }
    for (const auto& [name, ps] : away) {
      Add(wire::Finding::UNREACHABLE, name,
          absl::StrCat(List(ps.workers), " can't reach ", name, " at ",
                       ps.trouble, ", for ", For(ps.since)));
    }
  }

  bool IsThere(const std::string& name) const {
    return std::any_of(status_.task().begin(), status_.task().end(),
                       [&](const auto& task) {
                         return task.alive() && NameOfTask(task) == name;
                       });
  }

  // A ps that is heard and finishes nothing.
  void Stuck() {
    for (const wire::TaskStatus& task : status_.task()) {
      const std::string name = NameOfTask(task);
      if (task.task().role() != "ps" || silent_.contains(name)) continue;
      const absl::Duration stuck = FromProto(task.ps_load().stuck());
      if (stuck < kLate) continue;
      Add(wire::Finding::STUCK, name,
          absl::StrCat(name,
                       " is stuck: it is heard, but an operation has not "
                       "ended for ",
                       For(stuck), ": a lock, or its machine",
                       WaitersText(name)));
    }
  }

  void Loading() {
    if (status_.phase() != wire::LOADING && status_.phase() != wire::TRAINING) {
      return;
    }
    LongestOf(
        [](const wire::PsLoad& load) { return load.has_loading(); },
        [](const wire::PsLoad& load) { return FromProto(load.loading()); },
        absl::Seconds(1),
        [this](const std::string& name, absl::Duration time) {
          Add(wire::Finding::LOADING, name,
              absl::StrCat("the disk of ", name,
                           ", or its initial values: it has been loading its "
                           "variables for ",
                           For(time)));
        });
  }

  // While the last checkpoint is written, nothing else goes on.
  void Writing() {
    const bool is_awaited = status_.phase() != wire::TRAINING;
    LongestOf(
        [](const wire::PsLoad& load) { return load.has_writing(); },
        [](const wire::PsLoad& load) { return FromProto(load.writing()); },
        is_awaited ? absl::Seconds(1) : kLongWrite,
        [this](const std::string& name, absl::Duration time) {
          Add(wire::Finding::CHECKPOINT, name,
              absl::StrCat("the disk of ", name,
                           ": it has been writing its part of a checkpoint "
                           "for ",
                           For(time)));
        });
  }

  template <typename Has, typename Get, typename Found>
  void LongestOf(Has has, Get get, absl::Duration least, Found found) const {
    std::string name;
    absl::Duration longest = least;
    for (const wire::TaskStatus& task : status_.task()) {
      if (!has(task.ps_load()) || get(task.ps_load()) < longest) continue;
      longest = get(task.ps_load());
      name = NameOfTask(task);
    }
    if (!name.empty()) found(name, longest);
  }

  void Evaluation() {
    if (!status_.has_awaited_evaluation()) return;
    const absl::Duration waited = FromProto(status_.evaluation_waited());
    if (waited < absl::Seconds(1)) return;
    Add(wire::Finding::EVALUATION, "evaluator/0",
        absl::StrCat("the evaluator's lag: the job waits for the evaluation of "
                     "step ",
                     status_.awaited_evaluation(), ", for ", For(waited), "; ",
                     status_.due_evaluations(), " are due"));
  }

  // No step is made, and nothing is wrong.
  void Data() {
    const wire::FollowedData& data = status_.followed();
    if (!data.trouble().empty()) {
      Add(wire::Finding::DATA, "",
          absl::StrCat("the training set: ", data.trouble()));
    }
    if (!data.has_waited()) return;
    Add(wire::Finding::DATA, "", WaitForData(data));
  }

  void Absent() {
    for (const wire::AbsentTask& task : status_.absent_task()) {
      Add(wire::Finding::MISSING, task.task(),
          absl::StrCat(
              task.task(),
              task.was_there() ? " is gone, for " : " has not come, for ",
              For(FromProto(task.absent())),
              ": the training goes on without it"));
    }
  }

  const wire::JobStatus& status_;
  std::set<std::string> silent_;
  std::set<std::string> loading_;
  std::vector<wire::Finding> findings_;
};

}  // namespace

void AddFindings(wire::JobStatus& status) {
  std::vector<wire::Finding> findings = Look(status).Find();
  status.mutable_finding()->Assign(findings.begin(), findings.end());
}

}  // namespace parasol
