#ifndef PARASOL_ML_OPTIMIZER_CLIP_H_
#define PARASOL_ML_OPTIMIZER_CLIP_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// Clipping of gradients, as tf.clip_by_value, tf.clip_by_norm and
// tf.clip_by_global_norm do it. A gradient of rows is the values that it has: a
// row that occurs twice counts twice, as in TensorFlow, which clips before it
// sums.
//
// Norms are L2, summed in double: where TensorFlow's overflow float32, and turn
// a finite gradient into zeros or NaN, these clip. All machines give the same
// bits.

// Each element to [-limit, limit]; NaN stays.
void ClipByValue(double limit, absl::Span<float> gradient);

// g·limit / max(norm, limit). An infinite norm makes finite elements 0 and the
// infinite ones NaN, a NaN in it everything NaN.
void ClipByNorm(double limit, absl::Span<float> gradient);

// All gradients of a step: g·limit / max(norm of all, limit). Everything
// becomes NaN if the norm is not finite.
void ClipByGlobalNorm(double limit,
                      absl::Span<const absl::Span<float>> gradients);

// Whether the limits that `spec` sets are above 0.
//   InvalidArgument  "<field> is <value>; …".
absl::Status CheckClipping(const job::Optimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_CLIP_H_
