#ifndef PARASOL_ML_LAYER_CONVOLUTION_BIAS_AND_RELU_H_
#define PARASOL_ML_LAYER_CONVOLUTION_BIAS_AND_RELU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/relu.h"

namespace parasol {

// Work of a layer on the sums of its kernel, which are its output [rows,
// columns]: it adds a bias, if it has one, and then may compute a relu.
struct BiasAndRelu {
  int64_t rows = 0;
  int64_t columns = 0;
  bool has_bias = false;
  Epilogue epilogue = Epilogue::kNone;

  absl::Status Apply(Device& device, const float* bias, float* y) const {
    return ApplyEpilogue(device, has_bias ? bias : nullptr, epilogue,
                         {y, rows, columns});
  }

  // Turns `dy`, the gradient by the output `y`, into the gradient by the sums,
  // and writes the bias's.
  absl::Status Gradient(Device& device, const float* y, float* dy,
                        float* dbias) const {
    if (epilogue == Epilogue::kRelu) {
      RETURN_IF_ERROR(ReluGradient(device, y, dy, rows * columns, dy));
    }
    if (!has_bias) return absl::OkStatus();
    return SumRows(device, {dy, rows, columns}, dbias);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_BIAS_AND_RELU_H_
