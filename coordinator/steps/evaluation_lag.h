#ifndef PARASOL_COORDINATOR_STEPS_EVALUATION_LAG_H_
#define PARASOL_COORDINATOR_STEPS_EVALUATION_LAG_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/job.pb.h"

namespace parasol {

// The evaluations of a job that are due and have no result: how many there are,
// and where the job waits for them (evaluation.max_lag). Pure.
//
// The unit is evaluations, not steps: it fits every_seconds too, does not
// depend on how fast the model is, and patience is counted in it.
class EvaluationLag {
 public:
  // Number of due evaluations at which they fall behind what was asked.
  static constexpr int64_t kBehind = 3;

  // The state of a job at a time.
  struct Look {
    int64_t global_step = 0;
    // False before and after training: then nothing is due.
    bool is_training = false;
    // True once the training is over: then no step is held back. Before it
    // workers of another chief's time may go on.
    bool is_over = false;
    // True if a checkpoint can't be written now: a job does not wait for the
    // evaluation of one that it lacks.
    bool is_failing = false;
    bool has_evaluator = false;  // one is alive
    absl::Time now;
  };

  // The run begins, or goes on, at `first_step`; its newest evaluation is of
  // the step `evaluated_to`, -1 if there is none. `limit` is the longest wait
  // in which no result comes.
  EvaluationLag(const job::EvaluationPolicy& policy, int64_t first_step,
                int64_t evaluated_to, absl::Duration limit);

  // Notes a checkpoint that is to be evaluated.
  void Written(int64_t step);
  // Takes the step of the newest evaluation.
  void Evaluated(int64_t step);
  // Takes a look. Returns a warning for the log when evaluations first fall
  // behind, or when the job goes on without one.
  std::optional<std::string> Observe(const Look& look);

  // Returns the number of steps beyond which none may begin now; nullopt if
  // there is no such limit. 0: none may begin at all.
  std::optional<int64_t> StepLimit() const;
  // Returns the number of due evaluations at the last look; 0 if the job has no
  // times for them.
  int64_t due() const { return due_; }
  // Returns true if that checkpoint is to be evaluated, and has no result.
  bool IsUnevaluated(int64_t step) const;
  // Returns the step whose evaluation the job waited for at the last look.
  std::optional<int64_t> awaited() const;
  // Returns the time for which it has waited.
  absl::Duration waited() const { return now_ - since_; }
  // Returns the step of the newest evaluation; -1 if there is none.
  int64_t evaluated_to() const { return evaluated_to_; }

 private:
  int64_t DueAt(int64_t global_step) const;
  bool IsOver() const {
    return max_lag_ && static_cast<int64_t>(unevaluated_.size()) > *max_lag_;
  }
  std::string BehindLine(int64_t global_step) const;

  const int64_t every_steps_;  // 0: not by steps
  const bool has_times_;
  const std::optional<int64_t> max_lag_;
  const absl::Duration limit_;
  // The step from which the next evaluation counts.
  int64_t newest_;
  int64_t evaluated_to_;
  std::deque<int64_t> unevaluated_;  // steps of checkpoints, ascending
  int64_t due_ = 0;
  bool is_failing_ = false;
  bool is_over_ = false;
  bool is_waiting_ = false;
  bool has_given_up_ = false;
  bool has_warned_ = false;
  absl::Time now_;
  absl::Time since_;  // begin of the wait
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_EVALUATION_LAG_H_
