#ifndef PARASOL_ML_KERNEL_INTERACTION_DOT_PRODUCTS_H_
#define PARASOL_ML_KERNEL_INTERACTION_DOT_PRODUCTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// The shapes of `examples` pairs of matrices a [a_rows, width] and b [b_rows,
// width]; the matrices of each side lie one after another.
struct RowPairs {
  int64_t examples = 0;
  int64_t a_rows = 0;
  int64_t b_rows = 0;
  int64_t width = 0;
};

// One side of the products: its matrices, and the factor of each of their rows,
// [examples, rows], or null for 1.
struct ScaledRows {
  const float* values = nullptr;
  const float* scales = nullptr;
};

// The smallest sum of squares by which a row is normalized, as of
// tf.math.l2_normalize, and the scale of a row with a smaller one.
inline constexpr float kSmallestSquares = 1e-12f;
inline constexpr float kLargestScale = 1e6f;

// All functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.

// Computes scales [rows] of rows x [rows, width], with which their L2 norms are
// 1: 1 / sqrt(max(Σ x², 1e-12)), as tf.math.l2_normalize has them.
absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales);

// Computes y [examples, a_rows, b_rows], y[i, j] = s[i] · t[j] · a[i] · b[j],
// where s scales a and t scales b.
absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y);

// Computes the gradients by both sides from y and dy. With scales they are
// gradients by the rows of which InverseNorms() made these:
//   da[i] = s[i] · Σ_j dy[i, j] · (t[j] · b[j] - y[i, j] · s[i] · a[i]),
// without the second term where the scale is kLargestScale and for no scales.
// Null for a gradient that is not wanted.
absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales);
absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y);
absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db);
}  // namespace cpu

namespace cuda {
absl::Status InverseNorms(Device& device, int64_t rows, int64_t width,
                          const float* x, float* scales);
absl::Status DotProducts(Device& device, const RowPairs& shape,
                         const ScaledRows& a, const ScaledRows& b, float* y);
absl::Status DotProductGradients(Device& device, const RowPairs& shape,
                                 const ScaledRows& a, const ScaledRows& b,
                                 const float* y, const float* dy, float* da,
                                 float* db);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_INTERACTION_DOT_PRODUCTS_H_
