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

// Computes the largest value or the mean of each window of each channel;
// padding is left out. x is [examples, height, width, channels] and y
// [examples, output height, output width, channels].
//
// All arrays of a call have one type. All work is enqueued on the compute
// stream; outputs overlap no input. Borrows the device. Not thread-safe. Error
// Unavailable: the device was lost.
class Pooling {
 public:
  // Returns a pooling of `shape`, in which every window must contain a pixel.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<Pooling>> Create(
      Device& device, const PoolingShape& shape);
  virtual ~Pooling() = default;

  // Computes y. The largest value of a window that contains NaN is NaN.
  virtual absl::Status Forward(ConstElements x, Elements y) = 0;

  // Computes dx. `y` is Forward()'s output. A gradient of kMax goes to the
  // first, row by row, of the pixels that are the largest.
  virtual absl::Status InputGradient(ConstElements x, ConstElements y,
                                     ConstElements dy, Elements dx) = 0;
};

// The implementations for CPU and CUDA devices. Pooling::Create() calls the one
// for `device`.
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
