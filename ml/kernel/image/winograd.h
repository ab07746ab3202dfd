#ifndef PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_
#define PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/convolution_shape.h"
#include "ml/kernel/image/winograd_tiles.h"

namespace parasol::cpu {

// The passes of a convolution on a CpuDevice by Winograd's filtering
// (winograd_tiles.h), for windows of 3 × 3 pixels with stride 1. They
// multiply 2.25 times less than the sums over windows, and round about as those
// do: the factors before and behind the products are 0, 1 and ½. A pixel that
// is infinite makes other pixels of its tile NaN.
//
// The bits of forward pass and input gradient do not depend on the number of
// threads, nor on an example's place in the batch; those of the kernel's
// gradient depend on both. Borrows the device. Not thread-safe.
class Winograd {
 public:
  // Returns true if this processor has AVX-512, `shape` has such a window, its
  // channels and filters are multiples of 16, and its images are so large that
  // this is faster than the sums over windows.
  static bool Fits(const ConvolutionShape& shape);

  // `shape` is one that Fits().
  Winograd(Device& device, const ConvolutionShape& shape);

  // The passes of Convolution, each without the biases' gradient. `bias` may be
  // null. Each allocates its memory when it is first called.
  //   ResourceExhausted  no memory.
  absl::Status Forward(const float* x, const float* kernel, const float* bias,
                       Epilogue epilogue, float* y);
  absl::Status KernelGradient(const float* x, const float* dy, float* dkernel);
  absl::Status InputGradient(const float* dy, const float* kernel, float* dx);

 private:
  // A pass over all tiles in blocks, which are dealt out to the device's
  // threads in parts.
  struct Pass {
    winograd::Tiling tiling;
    int64_t capacity = 0;  // tiles of a block
    int64_t parts = 0;
    // Two for each part: of a block's channels and of its filters.
    Array<float> buffers;
    // A kernel's factors, or sums of them for each part.
    Array<float> factors;
  };

  absl::StatusOr<Pass> NewPass(const winograd::Tiling& tiling, int64_t capacity,
                               bool has_sums);
  // Calls body(part, block, buffer of channels, buffer of filters).
  template <typename Body>
  void ForEachBlock(Pass& pass, Body body);
  void Convolve(Pass& pass, const float* x, const float* kernel,
                const float* bias, Epilogue epilogue, float* y);

  Device& device_;
  const winograd::Tiling tiling_;
  std::optional<Pass> forward_;
  std::optional<Pass> kernel_gradient_;
  std::optional<Pass> input_gradient_;
  Array<float> turned_kernel_;
};

}  // namespace parasol::cpu

#endif  // PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_
