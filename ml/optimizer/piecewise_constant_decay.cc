#include "ml/optimizer/piecewise_constant_decay.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

absl::Status CheckRanges(const job::PiecewiseConstantDecay& spec) {
  if (spec.boundary_size() != spec.value_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "piecewise_constant_decay.value is a list of ", spec.value_size(),
        " for ", spec.boundary_size(),
        " boundaries; it must have one for each, the rate after it"));
  }
  int64_t previous = -1;
  for (int i = 0; i < spec.boundary_size(); ++i) {
    if (spec.boundary(i) <= previous) {
      return absl::InvalidArgumentError(
          absl::StrCat("piecewise_constant_decay.boundary[", i, "] is ",
                       spec.boundary(i), "; it must be above ", previous));
    }
    previous = spec.boundary(i);
    RETURN_IF_ERROR(CheckNotNegative(
        absl::StrCat("piecewise_constant_decay.value[", i, "]"),
        spec.value(i)));
  }
  return absl::OkStatus();
}

double RateAt(double initial, const job::PiecewiseConstantDecay& spec,
              int64_t step) {
  const auto& boundaries = spec.boundary();
  const auto passed =
      std::lower_bound(boundaries.begin(), boundaries.end(), step) -
      boundaries.begin();
  return passed == 0 ? initial : spec.value(static_cast<int>(passed - 1));
}

}  // namespace

constinit const ScheduleKind kPiecewiseConstantDecayKind = {
    .field = job::LearningRateSchedule::kPiecewiseConstantDecay,
    .check =
        [](const job::LearningRateSchedule& schedule) {
          return CheckRanges(schedule.piecewise_constant_decay());
        },
    .rate =
        [](double initial, const job::LearningRateSchedule& schedule,
           int64_t iterations) {
          return RateAt(initial, schedule.piecewise_constant_decay(),
                        iterations);
        },
};

}  // namespace parasol
