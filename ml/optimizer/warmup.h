#ifndef PARASOL_ML_OPTIMIZER_WARMUP_H_
#define PARASOL_ML_OPTIMIZER_WARMUP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Sets an unset `start` to 0.
void FillDefaults(job::Warmup& warmup);

// Checks that `warmup` has at least one step and a start that is finite and not
// negative.
//   InvalidArgument  "warmup.<field> is <value>; …".
absl::Status CheckWarmup(const job::Warmup& warmup);

// Returns the rate after `iterations` updates of a schedule that has `rate`
// there: start + (rate - start) · iterations / steps before the warm-up's end,
// `rate` from there on. All fields of `warmup` are set and in their ranges.
double WarmedUp(const job::Warmup& warmup, double rate, int64_t iterations);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_WARMUP_H_
