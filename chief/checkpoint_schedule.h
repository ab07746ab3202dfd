#ifndef PARASOL_CHIEF_CHECKPOINT_SCHEDULE_H_
#define PARASOL_CHIEF_CHECKPOINT_SCHEDULE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/job.pb.h"

namespace parasol {

// When the next checkpoint is due. Pure: time is an argument.
class CheckpointSchedule {
 public:
  // After a failure the next attempt waits 1 s, then 2 s, 4 s, … up to this.
  static constexpr absl::Duration kMaxBackoff = absl::Seconds(30);

  // `newest_step`: of the checkpoint that was resumed from, if any.
  CheckpointSchedule(const job::CheckpointPolicy& policy,
                     std::optional<int64_t> newest_step, absl::Time now);

  // By the policy: some step that is a multiple of every_steps has been passed,
  // or every_seconds have gone by, since the newest one; never a second one of
  // the same step.
  bool IsDue(int64_t step, absl::Time now) const;
  // After a failure: whether it is time to try again.
  bool MayTry(absl::Time now) const { return now >= next_try_; }

  void Written(int64_t step, absl::Time now);
  void Failed(absl::Time now);
  // Another kind of checkpoint is wanted: those that failed don't count.
  void StartOver();

  // Nothing: there is no checkpoint yet.
  std::optional<int64_t> newest_step() const { return newest_step_; }
  // Since the last one that was written, or StartOver().
  int failures() const { return failures_; }

 private:
  const int64_t every_steps_;
  const absl::Duration every_;
  std::optional<int64_t> newest_step_;
  absl::Time written_at_;
  absl::Time next_try_ = absl::InfinitePast();
  int failures_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHECKPOINT_SCHEDULE_H_
