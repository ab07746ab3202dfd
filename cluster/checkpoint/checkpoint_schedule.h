#ifndef PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_SCHEDULE_H_
#define PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_SCHEDULE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/job.pb.h"

namespace parasol {

// The times at which checkpoints are due. Pure: time is an argument.
class CheckpointSchedule {
 public:
  // Longest wait after failed attempts: the next attempt waits 1 s, then 2 s, 4
  // s, … up to this.
  static constexpr absl::Duration kMaxBackoff = absl::Seconds(30);
  // Longest time between two tries while a whole job waits for the checkpoint.
  static constexpr absl::Duration kMaxAwaitedBackoff = absl::Seconds(5);

  // `newest_step` is the step of the checkpoint that was resumed from, if any.
  CheckpointSchedule(const job::CheckpointPolicy& policy,
                     std::optional<int64_t> newest_step, absl::Time now);

  // Returns true if the policy asks for a checkpoint: since the newest one a
  // step that is a multiple of every_steps has been passed, or every_seconds
  // have gone by. Never true for a second checkpoint of the same step.
  bool IsDue(int64_t step, absl::Time now) const;
  // Returns the step from which a checkpoint is due by steps; nullopt if none
  // is.
  std::optional<int64_t> NextStep() const;
  // Returns true if no attempt has failed lately, or the wait after the failure
  // is over.
  bool MayTry(absl::Time now) const { return now >= next_try_; }

  void Written(int64_t step, absl::Time now);
  // Notes a failed attempt; the next one waits for `max_backoff` at most.
  void Failed(absl::Time now, absl::Duration max_backoff = kMaxBackoff);
  // Forgets failed attempts, because another kind of checkpoint is wanted.
  void StartOver();
  // Ends the wait after a failure, because what may have been its cause has
  // changed.
  void TryNow() { next_try_ = absl::InfinitePast(); }

  // The step of the newest checkpoint; nullopt if there is none yet.
  std::optional<int64_t> newest_step() const { return newest_step_; }
  // Number of failures since the last checkpoint that was written, or since
  // StartOver().
  int failures() const { return failures_; }
  // The time of the first of these failures; the infinite future if there is
  // none.
  absl::Time failing_since() const { return failing_since_; }

 private:
  const int64_t every_steps_;
  const absl::Duration every_;
  std::optional<int64_t> newest_step_;
  absl::Time written_at_;
  absl::Time next_try_ = absl::InfinitePast();
  int failures_ = 0;
  absl::Time failing_since_ = absl::InfiniteFuture();
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_SCHEDULE_H_
