#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/interaction/factorization_machine.h"

namespace parasol::cpu {
namespace {

// The sums over fields are of so many columns at a time, on the stack.
constexpr int64_t kColumns = 64;

// sums[k] = Σ_f x[f, k], for `columns` columns of a matrix `width` wide.
__attribute__((always_inline)) inline void SumFields(const float* x,
                                                     int64_t fields,
                                                     int64_t width,
                                                     int64_t columns,
                                                     float* sums) {
  std::fill_n(sums, columns, 0.0f);
  for (int64_t f = 0; f < fields; ++f) {
    for (int64_t k = 0; k < columns; ++k) sums[k] += x[f * width + k];
  }
}

// x[f] times the sum of the fields before it: no difference of squares, which
// would lose digits.
PARASOL_MULTIVERSION float Interact(const Interaction& shape, const float* x) {
  float sums[kColumns];
  float total = 0;
  for (int64_t first = 0; first < shape.width; first += kColumns) {
    const int64_t columns = std::min(kColumns, shape.width - first);
    std::fill_n(sums, columns, 0.0f);
    for (int64_t f = 0; f < shape.fields; ++f) {
      const float* const row = x + f * shape.width + first;
#pragma omp simd reduction(+ : total)
      for (int64_t k = 0; k < columns; ++k) {
        total += row[k] * sums[k];
        sums[k] += row[k];
      }
    }
  }
  return total;
}

PARASOL_MULTIVERSION void Gradient(const Interaction& shape, const float* x,
                                   float dy, float* dx) {
  float sums[kColumns];
  for (int64_t first = 0; first < shape.width; first += kColumns) {
    const int64_t columns = std::min(kColumns, shape.width - first);
    SumFields(x + first, shape.fields, shape.width, columns, sums);
    for (int64_t f = 0; f < shape.fields; ++f) {
      const int64_t begin = f * shape.width + first;
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t k = 0; k < columns; ++k) {
        dx[begin + k] = dy * (sums[k] - x[begin + k]);
      }
    }
  }
}

}  // namespace

absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y) {
  const int64_t elements = shape.fields * shape.width;
  for (int64_t i = 0; i < shape.examples; ++i) {
    y[i] = Interact(shape, x + i * elements);
  }
  return absl::OkStatus();
}

absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx) {
  const int64_t elements = shape.fields * shape.width;
  for (int64_t i = 0; i < shape.examples; ++i) {
    Gradient(shape, x + i * elements, dy[i], dx + i * elements);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
