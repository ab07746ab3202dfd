#ifndef PARASOL_ML_KERNEL_SEQUENCE_POOLED_COLUMN_H_
#define PARASOL_ML_KERNEL_SEQUENCE_POOLED_COLUMN_H_

#include <cstdint>

#include "ml/kernel/pass_argument.h"
#include "ml/kernel/sequence/step_pooling.h"

namespace parasol {

// One channel of one example, and its pooling over the steps, which CPU loops
// and CUDA kernels share.
struct PooledColumn {
  StepsShape shape;
  const float* x;
  const float* mask;

  PARASOL_ON_ANY_DEVICE PooledColumn(const StepsShape& shape, const float* x,
                                     const float* mask, int64_t index)
      : shape(shape),
        x(x + index / shape.channels * shape.steps * shape.channels +
          index % shape.channels),
        mask(mask == nullptr ? nullptr
                             : mask + index / shape.channels * shape.steps) {}

  PARASOL_ON_ANY_DEVICE bool Counts(int64_t step) const {
    return mask == nullptr || mask[step] > .5f;
  }
  PARASOL_ON_ANY_DEVICE float At(int64_t step) const {
    return x[step * shape.channels];
  }
  PARASOL_ON_ANY_DEVICE int64_t Count() const {
    if (mask == nullptr) return shape.steps;
    int64_t count = 0;
    for (int64_t t = 0; t < shape.steps; ++t) count += Counts(t);
    return count;
  }

  PARASOL_ON_ANY_DEVICE float Average() const {
    float sum = 0;
    for (int64_t t = 0; t < shape.steps; ++t) {
      if (Counts(t)) sum += At(t);
    }
    const int64_t count = Count();
    return count == 0 ? 0 : sum / static_cast<float>(count);
  }
  // Is NaN once it has met one.
  PARASOL_ON_ANY_DEVICE float Max() const {
    bool any = false;
    float largest = 0;
    for (int64_t t = 0; t < shape.steps; ++t) {
      if (!Counts(t)) continue;
      const float value = At(t);
      if (!any || value > largest || value != value) largest = value;
      any = true;
    }
    return largest;
  }

  PARASOL_ON_ANY_DEVICE void AverageGradient(float dy, float* dx) const {
    const int64_t count = Count();
    const float share = count == 0 ? 0 : dy / static_cast<float>(count);
    for (int64_t t = 0; t < shape.steps; ++t) {
      dx[t * shape.channels] = Counts(t) ? share : 0;
    }
  }
  PARASOL_ON_ANY_DEVICE void MaxGradient(float y, float dy, float* dx) const {
    int64_t equal = 0;
    for (int64_t t = 0; t < shape.steps; ++t) equal += Counts(t) && At(t) == y;
    for (int64_t t = 0; t < shape.steps; ++t) {
      const bool is_largest = Counts(t) && At(t) == y;
      dx[t * shape.channels] = is_largest ? dy / static_cast<float>(equal) : 0;
    }
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_POOLED_COLUMN_H_
