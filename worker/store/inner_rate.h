#ifndef PARASOL_WORKER_STORE_INNER_RATE_H_
#define PARASOL_WORKER_STORE_INNER_RATE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "ml/optimizer/learning_rate.h"
#include "proto/job.pb.h"

namespace parasol {

// The learning rate of local steps by an optimizer with a schedule: it goes by
// the place of a step in the whole job, not by the updates that one worker has
// made.
class InnerRate {
 public:
  // Returns nullopt if the optimizer has no schedule.
  //   InvalidArgument  the schedule can't be used.
  static absl::StatusOr<std::optional<InnerRate>> Of(
      const job::Optimizer& inner);

  // Gives the optimizer the rate of an update, and no schedule.
  void Set(int64_t update, job::Optimizer& inner) const;

 private:
  explicit InnerRate(LearningRate rate) : rate_(std::move(rate)) {}

  LearningRate rate_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_INNER_RATE_H_
