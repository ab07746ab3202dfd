#ifndef PARASOL_ML_KERNEL_TESTING_REFERENCE_IMAGE_H_
#define PARASOL_ML_KERNEL_TESTING_REFERENCE_IMAGE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/image/pooling.h"

// The operations on images as plain loops in double precision. They are the
// specification that the kernels of every device are tested against. Arrays
// have the layout of the kernels' arrays.
namespace parasol::reference {

using Values = std::vector<double>;

// Returns the convolution without an epilogue. `bias` may be empty.
Values Convolution(const ConvolutionShape& shape, absl::Span<const double> x,
                   absl::Span<const double> kernel,
                   absl::Span<const double> bias);
Values ConvolutionKernelGradient(const ConvolutionShape& shape,
                                 absl::Span<const double> x,
                                 absl::Span<const double> dy);
Values ConvolutionInputGradient(const ConvolutionShape& shape,
                                absl::Span<const double> dy,
                                absl::Span<const double> kernel);

struct ChannelMoments {
  Values mean;
  Values variance;  // Σ (x - mean)² / rows
};
// Returns the moments of each channel of x [rows, channels].
ChannelMoments MomentsOf(absl::Span<const double> x, int64_t channels);
// Returns gamma · (x - mean) / sqrt(variance + epsilon) + beta. An empty
// `gamma` stands for ones, an empty `beta` for zeros.
Values BatchNormalization(absl::Span<const double> x,
                          const ChannelMoments& moments,
                          absl::Span<const double> gamma,
                          absl::Span<const double> beta, double epsilon);

Values Pooling(const PoolingShape& shape, absl::Span<const double> x);
// Returns dx. The first of several largest pixels, row by row, gets kMax's
// gradient.
Values PoolingInputGradient(const PoolingShape& shape,
                            absl::Span<const double> x,
                            absl::Span<const double> dy);

}  // namespace parasol::reference

#endif  // PARASOL_ML_KERNEL_TESTING_REFERENCE_IMAGE_H_
