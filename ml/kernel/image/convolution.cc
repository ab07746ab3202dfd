#include "ml/kernel/image/convolution.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<Convolution>> Convolution::Create(
    Device& device, const ConvolutionShape& shape, const Options& options) {
  CHECK_GT(shape.y_size(), 0);
  CHECK_GT(shape.x_size(), 0);
  return PARASOL_DISPATCH(device, NewConvolution(device, shape, options));
}

}  // namespace parasol
