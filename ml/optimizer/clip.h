#ifndef PARASOL_ML_OPTIMIZER_CLIP_H_
#define PARASOL_ML_OPTIMIZER_CLIP_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// Clipping of gradients as in tf.clip_by_value, tf.clip_by_norm and
// tf.clip_by_global_norm. A gradient of rows is clipped as the values that it
// has: a row that occurs twice counts twice, as in TensorFlow, which clips
// before it sums.
//
// Norms are L2, summed in double. A norm that overflows float32 in TensorFlow,
// where it turns a finite gradient into zeros or NaN, clips correctly here. All
// machines give the same bits.

// Clips each element to [-limit, limit]; NaN stays.
void ClipByValue(double limit, absl::Span<float> gradient);

// Multiplies the gradient by limit / max(norm, limit). If the norm is infinite,
// finite elements become 0 and infinite ones NaN. If it is NaN, all elements
// become NaN.
void ClipByNorm(double limit, absl::Span<float> gradient);

// Multiplies all gradients of a step by limit / max(norm of all, limit). All
// elements become NaN if the norm is not finite.
void ClipByGlobalNorm(double limit,
                      absl::Span<const absl::Span<float>> gradients);

// Checks that the limits that `spec` sets are above 0.
//   InvalidArgument  "<field> is <value>; …".
absl::Status CheckClipping(const job::Optimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_CLIP_H_
