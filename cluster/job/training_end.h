#ifndef PARASOL_CLUSTER_JOB_TRAINING_END_H_
#define PARASOL_CLUSTER_JOB_TRAINING_END_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// The end of a job, in steps of the cluster: at end.steps, or when each of the
// training examples has been seen end.epochs times, whichever is first. An end
// in epochs needs a worker's report of the number of examples. Pure.
class TrainingEnd {
 public:
  explicit TrainingEnd(const job::Job& job);

  // Takes a worker's count of the examples of the whole training set.
  //   InvalidArgument  another worker has counted differently, or there are
  //                    none and the end depends on them.
  absl::Status ObserveExamples(int64_t train_examples);

  // Returns the last step; nullopt while it depends on a count that no worker
  // has reported.
  std::optional<int64_t> step() const;

 private:
  const job::TrainingEnd end_;
  // Number of examples per step: one worker's batch; in synchronous training,
  // the batches of all replicas.
  const int64_t step_examples_;
  std::optional<int64_t> train_examples_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_TRAINING_END_H_
