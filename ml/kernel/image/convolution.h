#ifndef PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_H_
#define PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/convolution_shape.h"

namespace parasol {

// The convolution (cross-correlation) of images with a kernel:
//   y[n,i,j,f] = epilogue(bias[f] + Σ x[n, i·s+k-p, j·t+l-q, c] · w[k,l,c,f])
// x is [examples, height, width, channels], w [height, width, channels,
// filters] and y [examples, output height, output width, filters]. Padding
// counts as 0.
//
// The arrays of x, y and their gradients have one type in all calls. All work
// is enqueued on the compute stream; outputs overlap no input. Products have
// the precision of the device. Borrows the device. Not thread-safe. Error
// Unavailable: the device was lost.
class Convolution {
 public:
  struct Options {
    bool has_bias = false;
    Epilogue epilogue = Epilogue::kNone;
  };

  // Returns a convolution for `device`. Each operation may allocate its memory
  // when it is first computed, because evaluation needs none for gradients; it
  // too fails with ResourceExhausted then.
  //   ResourceExhausted  the device is full.
  //   InvalidArgument    a CUDA device, and about 2^31 pixels or terms of a
  //   sum;
  //                      the message has the number.
  static absl::StatusOr<std::unique_ptr<Convolution>> Create(
      Device& device, const ConvolutionShape& shape, const Options& options);
  virtual ~Convolution() = default;

  // Computes y. `bias` is read only if Options::has_bias.
  virtual absl::Status Forward(ConstElements x, const float* kernel,
                               const float* bias, Elements y) = 0;

  // Writes the gradients by kernel and bias. `dy` is the gradient by the values
  // before the epilogue. `dbias` is written only if Options::has_bias.
  virtual absl::Status VariableGradients(ConstElements x, ConstElements dy,
                                         float* dkernel, float* dbias) = 0;
  virtual absl::Status InputGradient(ConstElements dy, const float* kernel,
                                     Elements dx) = 0;
};

// The implementations for CPU and CUDA devices. Convolution::Create() calls the
// one for `device`.
namespace cpu {
absl::StatusOr<std::unique_ptr<Convolution>> NewConvolution(
    Device& device, const ConvolutionShape& shape,
    const Convolution::Options& options);
}  // namespace cpu

namespace cuda {
// Number of products of a pass from which cuDNN's kernels for TF32 and bfloat16
// are faster than the project's for float32, by measurement on an H200; an
// eighth of it where both channels and filters are many.
inline constexpr int64_t kLeastForDnn = int64_t{1} << 29;
inline constexpr int64_t kManyChannels = 64;

// Convolutions of fewer products per pass than that are computed in float32,
// which holds more than any precision asks for; larger ones too on a device of
// that precision, and where cuDNN is missing or does not have them.
absl::StatusOr<std::unique_ptr<Convolution>> NewConvolution(
    Device& device, const ConvolutionShape& shape,
    const Convolution::Options& options, int64_t least_for_dnn = kLeastForDnn);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_H_
