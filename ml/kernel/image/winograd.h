#ifndef PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_
#define PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/convolution_shape.h"
#include "ml/kernel/image/winograd_tiles.h"

namespace parasol::cpu {

// The passes of a convolution on a CpuDevice by Winograd's filtering
// (winograd_tiles.h), for windows of 3 × 3 pixels with stride 1. They multiply
// 2.25 times less than the sums over windows, and round about as those do: the
// factors before and behind the products are 0, 1 and ½. A pixel that is not
// finite, or next to float32's largest number, makes its whole tile NaN.
//
// The bits of forward pass and input gradient do not depend on the number of
// threads, nor on an example's place in the batch; the bits of the kernel's
// gradient depend on both. Borrows the device, whose scratch memory is all that
// the passes need. Not thread-safe.
class Winograd {
 public:
  // Returns true if this processor has AVX-512, `shape` has such a window, its
  // channels and filters are multiples of 16, and its images are so large that
  // this is faster than the sums over windows.
  static bool Fits(const ConvolutionShape& shape);

  // `shape` is one that Fits().
  Winograd(Device& device, const ConvolutionShape& shape);

  // The passes of Convolution, each without the biases' gradient. `bias` may be
  // null.
  //   ResourceExhausted  no memory.
  absl::Status Forward(const float* x, const float* kernel, const float* bias,
                       Epilogue epilogue, float* y);
  absl::Status KernelGradient(const float* x, const float* dy, float* dkernel);
  absl::Status InputGradient(const float* dy, const float* kernel, float* dx);

 private:
  // A pass over all tiles in blocks of `capacity`, which are dealt out to the
  // device's threads in parts. Each part has two buffers of a block, behind
  // each other: of its channels and of its filters.
  struct Pass {
    winograd::Tiling tiling;
    int64_t capacity = 0;
    int64_t parts = 0;
    float* buffers = nullptr;
    // A kernel's factors, or sums of them for each part.
    float* factors = nullptr;
  };
  // The parts of a pass that one thread computes.
  struct Part {
    int64_t index = 0;
    int64_t begin = 0;  // blocks
    int64_t end = 0;
    float* channels = nullptr;
    float* filters = nullptr;
  };

  Pass NewPass(const winograd::Tiling& tiling, int64_t capacity) const;
  void ForEachPart(const Pass& pass,
                   absl::FunctionRef<void(const Part& part)> body);
  // Computes the convolution of `x` with a kernel of the pass's tiling.
  void Convolve(const Pass& pass, const float* x, const float* kernel,
                const float* bias, Epilogue epilogue, float* y);

  Device& device_;
  const winograd::Tiling tiling_;
};

}  // namespace parasol::cpu

#endif  // PARASOL_ML_KERNEL_IMAGE_WINOGRAD_H_
