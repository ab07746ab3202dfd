#ifndef PARASOL_ML_OPTIMIZER_ASSIGNED_AVERAGED_H_
#define PARASOL_ML_OPTIMIZER_ASSIGNED_AVERAGED_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Name of the slot that has a variable's moving average: its last one.
inline constexpr absl::string_view kAverageSlot = "average";

// Sets an unset decay to .99, as Keras has it.
void FillDefaults(job::Ema& ema);

// Checks that the decay is in [0, 1).
//   InvalidArgument  "ema.decay is <value>; …".
absl::Status CheckEma(const job::Ema& ema);

// Returns `optimizer` with one more slot, the moving average of the values:
//   average = decay · average + (1 - decay) · w
// after each update, and w after the first one, as Keras's use_ema has it.
// Before the first update it has no meaning (0).
//   InvalidArgument  as for CheckEma().
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAveraged(
    std::unique_ptr<const Optimizer> optimizer, const job::Ema& ema);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ASSIGNED_AVERAGED_H_
