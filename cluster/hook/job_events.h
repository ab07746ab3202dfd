#ifndef PARASOL_CLUSTER_HOOK_JOB_EVENTS_H_
#define PARASOL_CLUSTER_HOOK_JOB_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/hook/training_hook.h"
#include "proto/chief.pb.h"

namespace parasol {

// Makes of the status of a job, looked at again and again, what has happened
// since the last look. Pure.
class JobEvents {
 public:
  struct Seen {
    std::vector<TrainingHook::Epoch> epochs = {};
    std::optional<TrainingHook::Checkpoint> checkpoint = std::nullopt;
  };

  // Takes the job's status. The first one is what others are compared with.
  // `is_exact`: the status is of the process that trains, between two steps, so
  // its sums are of all steps that are done, and of no others.
  Seen Observe(const wire::JobStatus& status, bool is_exact);

 private:
  void EndEpoch(int64_t number, const wire::EpochEnd& end, Seen& seen);

  bool has_begun_ = false;
  std::string checkpoint_;  // path of the newest one
  // The end of the last epoch, or the first status.
  int64_t step_ = 0;
  double loss_sum_ = 0;
  int64_t examples_ = 0;
  // The step from which on these sums have all. Sums that have all from another
  // one are another chief's, or lack losses: they don't compare.
  int64_t seen_from_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_HOOK_JOB_EVENTS_H_
