#ifndef PARASOL_COORDINATOR_JOB_PHASES_H_
#define PARASOL_COORDINATOR_JOB_PHASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// The phase of a job, and the ways in which the job and its chief end. Pure.
//
//   WAITING_FOR_PS ─► LOADING ─► TRAINING ─► FINISHING ─► COMPLETE
//          ▲─────────────┘           any of these ─► FAILED
//
// The loss of a ps after LOADING changes no phase: its shard alone is loaded
// again when it is back, while the others go on.
class JobPhases {
 public:
  struct Options {
    // True if nothing was left to do when the chief started.
    bool already_complete = false;
    // Time that tasks have to leave when the job has ended.
    absl::Duration finish_timeout;
  };

  JobPhases(const Options& options, absl::Time now);

  void Enter(wire::JobPhase phase, absl::Time now);
  // Ends the job with this error. Changes nothing if it has ended.
  void Fail(absl::Status failure, absl::Time now);
  // Ends the chief with this error. The job may go on with another chief.
  void GiveUp(absl::Status error) { gave_up_ = std::move(error); }

  wire::JobPhase phase() const { return phase_; }
  // The time at which the phase began.
  absl::Time since() const { return since_; }
  // A number that grows whenever a phase begins.
  int64_t begun() const { return begun_; }
  bool HasEnded() const {
    return phase_ == wire::COMPLETE || phase_ == wire::FAILED;
  }
  bool HasGivenUp() const { return gave_up_.has_value(); }
  // Returns what has failed; empty if the job has not failed.
  std::string failure() const { return std::string(failure_.message()); }
  // The time at which training began; nullopt before that.
  std::optional<absl::Time> training_since() const { return training_since_; }
  // Returns the time for which the job has trained; nullopt before that.
  std::optional<absl::Duration> Trained(absl::Time now) const;

  // Returns the time at which a job that has ended waits for its tasks no more.
  // The wait is shorter if the chief itself `is_stopping`.
  absl::Time LeaveDeadline(bool is_stopping) const;
  // Returns how a chief ends that has given up, or whose job has ended;
  // nullopt while it must not end. `all_left` is true if no task has yet to
  // leave.
  std::optional<absl::Status> Outcome(bool all_left, bool is_stopping,
                                      absl::Time now) const;

 private:
  const Options options_;
  wire::JobPhase phase_ = wire::WAITING_FOR_PS;
  absl::Time since_;
  int64_t begun_ = 0;
  // The beginning and the end of TRAINING.
  std::optional<absl::Time> training_since_;
  std::optional<absl::Time> training_until_;
  absl::Status failure_;
  std::optional<absl::Status> gave_up_;
};

// Time for which the chief of a job that was complete at its start stays, so
// that tasks that start at the same time learn that there is nothing to do.
inline constexpr absl::Duration kCompleteLinger = absl::Seconds(5);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_JOB_PHASES_H_
