#include "ml/optimizer/optimizer.h"

#include "absl/status/status.h"
#include "ml/optimizer/adagrad.h"
#include "ml/optimizer/adam.h"
#include "ml/optimizer/sgd.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const job::Optimizer& spec) {
  switch (spec.kind_case()) {
    case job::Optimizer::kSgd:
      return MakeSgd(spec.sgd(), spec.learning_rate_schedule());
    case job::Optimizer::kAdagrad:
      return MakeAdagrad(spec.adagrad(), spec.learning_rate_schedule());
    case job::Optimizer::kAdam:
      return MakeAdam(spec.adam(), spec.learning_rate_schedule());
    case job::Optimizer::kLazyAdam:
      return MakeLazyAdam(spec.lazy_adam(), spec.learning_rate_schedule());
    case job::Optimizer::KIND_NOT_SET:
    default:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer is not set: choose sgd, adagrad or adam");
}

}  // namespace parasol
