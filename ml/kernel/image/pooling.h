#ifndef PARASOL_ML_KERNEL_IMAGE_POOLING_H_
#define PARASOL_ML_KERNEL_IMAGE_POOLING_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/image/window.h"

namespace parasol {

struct PoolingShape {
  enum class Kind { kMax, kAverage };

  Kind kind = Kind::kMax;
  int64_t examples = 0;
  WindowAxis height;
  WindowAxis width;
  int64_t channels = 0;

  int64_t x_size() const {
    return examples * height.input * width.input * channels;
  }
  int64_t y_size() const {
    return examples * height.output * width.output * channels;
  }
};

// The largest value or the mean of each window of each channel; padding counts
// as no value. x [examples, height, width, channels], y [examples, output
// height, output width, channels].
//
// Everything is enqueued on the compute stream; outputs overlap no input.
// Borrows the device. Not thread-safe. Unavailable: the device was lost.
class Pooling {
 public:
  // Every window of `shape` has a pixel.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<Pooling>> Create(
      Device& device, const PoolingShape& shape);
  virtual ~Pooling() = default;

  // The largest value of a window with NaN is NaN.
  virtual absl::Status Forward(const float* x, float* y) = 0;

  // `y` is Forward()'s output. A gradient of kMax goes to the first of the
  // pixels that are the largest, row by row.
  virtual absl::Status InputGradient(const float* x, const float* y,
                                     const float* dy, float* dx) = 0;
};

// What Pooling::Create() chooses from.
namespace cpu {
absl::StatusOr<std::unique_ptr<Pooling>> NewPooling(Device& device,
                                                    const PoolingShape& shape);
}  // namespace cpu

namespace cuda {
absl::StatusOr<std::unique_ptr<Pooling>> NewPooling(Device& device,
                                                    const PoolingShape& shape);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_POOLING_H_
