#include "ml/kernel/convolution.h"

#include "base/log.h"
#include "ml/kernel/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<Convolution>> Convolution::Create(
    Device& device, const ConvolutionShape& shape, const Options& options) {
  CHECK_GT(shape.y_size(), 0);
  CHECK_GT(shape.x_size(), 0);
  return PARASOL_DISPATCH(device, NewConvolution(device, shape, options));
}

}  // namespace parasol
