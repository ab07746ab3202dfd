#ifndef PARASOL_CHIEF_TRAINING_END_H_
#define PARASOL_CHIEF_TRAINING_END_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// When a job ends, in steps of the cluster: at end.steps, or when each of the
// training examples has been seen end.epochs times, whichever is first. The
// latter needs a worker to say how many examples there are. Pure.
class TrainingEnd {
 public:
  explicit TrainingEnd(const job::Job& job);

  // A worker has counted the examples of the whole training set.
  //   InvalidArgument  another worker has counted differently, or there are
  //                    none and the end depends on them.
  absl::Status ObserveExamples(int64_t train_examples);

  // Nothing while it depends on a number that no worker has told.
  std::optional<int64_t> step() const;

 private:
  const job::TrainingEnd end_;
  // One worker's batch; in synchronous training that of every replica.
  const int64_t step_examples_;
  std::optional<int64_t> train_examples_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_TRAINING_END_H_
