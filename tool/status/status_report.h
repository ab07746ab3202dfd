#ifndef PARASOL_TOOL_STATUS_STATUS_REPORT_H_
#define PARASOL_TOOL_STATUS_STATUS_REPORT_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/progress/step_rate.h"
#include "deploy/local/evaluation_line.h"
#include "deploy/local/progress.h"
#include "proto/chief.pb.h"

namespace parasol {

// A chief's answers about its job, and what follows from several of them: the
// steps per second, and since when a task has been in its state. Pure.
class StatusReport {
 public:
  // The evaluations of a run, as far as they are known.
  struct Evaluations {
    std::optional<EvaluationLine> newest = {};
    std::optional<BestCheckpoint> best = {};
  };

  // Takes the chief's answer at `now`, and what is known of the evaluations.
  void Observe(const wire::JobStatus& status, const Evaluations& evaluations,
               absl::Time now);

  // Returns the last answer as lines for people: the phase, the step, what is
  // waited for, the tasks, the last checkpoint and evaluation.
  std::string ToText() const;
  // Returns the same as one JSON object in one line.
  std::string ToJson() const;

  // Returns a line about the job if it has another phase or checkpoint, or is
  // bound by something else, or a task has another state, than when it was last
  // called; empty otherwise.
  std::string TakeChange();

  // Returns true once the job has come to its end, good or bad.
  bool IsOver() const;
  bool HasFailed() const { return status_.phase() == wire::FAILED; }

 private:
  struct TaskState {
    bool alive = false;
    absl::Time since;
    bool has_changed = false;  // false: since the first answer, or longer
  };

  std::optional<double> StepsPerSecond() const;
  std::string Progress() const;
  // Returns lines about the evaluations: how far they are behind, and the best
  // one; none if there is nothing to say.
  std::string EvaluationLines() const;

  wire::JobStatus status_;
  Evaluations evaluations_;
  absl::Time now_;
  StepRate rate_;
  MeanStepRate mean_rate_;
  std::map<std::string, TaskState> tasks_;
  std::string told_;  // the state that TakeChange() told last
};

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_STATUS_REPORT_H_
