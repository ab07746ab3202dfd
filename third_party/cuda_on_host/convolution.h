#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_CONVOLUTION_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>

namespace cuda_on_host {

// An NHWC array; of a kernel n is the number of filters.
struct ConvolutionArray {
  int64_t n = 0, c = 0, h = 0, w = 0;
  bool is_bfloat16 = false;

  int64_t size() const { return n * c * h * w; }
  size_t bytes() const { return size() * (is_bfloat16 ? 2 : 4); }
};

enum class ConvolutionPass { kForward, kFilterGradient, kInputGradient };

// A convolution with all its sizes. Elements of float32 are rounded to TF32 as
// they are read.
struct Convolution {
  ConvolutionPass pass = ConvolutionPass::kForward;
  ConvolutionArray x, w, y;
  int64_t before_h = 0, before_w = 0, after_h = 0, after_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  // Times which each sum is taken, for what is not exact.
  double factor = 1;

  // Returns true if the arrays' sizes fit a convolution.
  bool Fits() const;
  // Computes the pass by plain loops, with sums in double, and writes the one
  // of the three arrays that the pass computes.
  void Compute(void* x_data, void* w_data, void* y_data) const;
};

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_CONVOLUTION_H_
