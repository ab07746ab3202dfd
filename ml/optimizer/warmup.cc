#include "ml/optimizer/warmup.h"

#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {

void FillDefaults(job::Warmup& warmup) {
  PARASOL_SET_DEFAULT(warmup, start, 0.0);
}

absl::Status CheckWarmup(const job::Warmup& warmup) {
  if (warmup.steps() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "warmup.steps is ", warmup.steps(), "; it must be at least 1"));
  }
  return CheckNotNegative("warmup.start", warmup.start());
}

double WarmedUp(const job::Warmup& warmup, double rate, int64_t iterations) {
  if (iterations >= warmup.steps()) return rate;
  const double progress =
      static_cast<double>(iterations) / static_cast<double>(warmup.steps());
  return warmup.start() + (rate - warmup.start()) * progress;
}

}  // namespace parasol
