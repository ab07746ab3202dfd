#include "worker/store/inner_rate.h"

#include "base/status_macros.h"
#include "cluster/job/learning_rate_field.h"

namespace parasol {

absl::StatusOr<std::optional<InnerRate>> InnerRate::Of(
    const job::Optimizer& inner) {
  if (!inner.has_learning_rate_schedule()) return std::nullopt;
  ASSIGN_OR_RETURN(LearningRate rate,
                   LearningRate::Create(InitialLearningRate(inner),
                                        inner.learning_rate_schedule()));
  return InnerRate(std::move(rate));
}

void InnerRate::Set(int64_t update, job::Optimizer& inner) const {
  inner.clear_learning_rate_schedule();
  SetInitialLearningRate(rate_.At(update), inner);
}

}  // namespace parasol
