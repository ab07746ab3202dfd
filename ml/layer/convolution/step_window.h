#ifndef PARASOL_ML_LAYER_CONVOLUTION_STEP_WINDOW_H_
#define PARASOL_ML_LAYER_CONVOLUTION_STEP_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ml/kernel/image/window.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Largest window, stride and dilation, in steps: their products are int32.
inline constexpr int64_t kMaxWindowSteps = 1 << 15;

// Returns the window of a conv1d over [steps, channels]; `spec` has its
// defaults filled in. The window reaches over (kernel size - 1) · dilation + 1
// steps.
//   InvalidArgument  `shape` is not [steps, channels], a number is out of
//   range,
//                    or no window fits.
absl::StatusOr<WindowAxis> FitSteps(const Shape& shape,
                                    const job::Conv1D& spec);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_STEP_WINDOW_H_
