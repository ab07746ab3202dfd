#ifndef PARASOL_ML_INITIALIZER_FANS_H_
#define PARASOL_ML_INITIALIZER_FANS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace parasol {

// Standard deviation of a standard normal cut off at ±2. Keras divides the
// standard deviation of he_normal by it.
inline constexpr double kTruncatedStddev = .87962566103423978;

// Number of inputs that each output of a variable's layer has, and number of
// outputs that each input has.
struct Fans {
  double in = 1;
  double out = 1;
};

// Returns the fans by Keras's rule: 1 and 1 for a scalar, twice the length for
// a vector, rows and columns for a matrix. A convolution's kernel [height,
// width, in, out] has its last two axes, each times the size of the window.
inline Fans FansOf(absl::Span<const int64_t> shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) {
    return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  }
  double window = 1;
  for (const int64_t size : shape.first(shape.size() - 2)) window *= size;
  return {window * static_cast<double>(shape[shape.size() - 2]),
          window * static_cast<double>(shape[shape.size() - 1])};
}

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_FANS_H_
