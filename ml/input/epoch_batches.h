#ifndef PARASOL_ML_INPUT_EPOCH_BATCHES_H_
#define PARASOL_ML_INPUT_EPOCH_BATCHES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace parasol {

// Returns the number of batches of an epoch of `examples` examples; the last
// batch may be smaller.
constexpr int64_t BatchesOf(int64_t examples, int64_t batch_size) {
  return examples / batch_size + (examples % batch_size > 0);
}

// Returns the number of examples in batch `batch` of an epoch, from 0; 0 if the
// epoch has fewer batches.
constexpr int64_t ExamplesOfBatch(int64_t batch, int64_t examples,
                                  int64_t batch_size) {
  return std::clamp<int64_t>(examples - batch * batch_size, 0, batch_size);
}

// Returns the number of steps of `epochs` epochs, rounded up. A product that is
// a whole number but for the rounding of doubles is that number.
inline int64_t StepsOfEpochs(double epochs, int64_t steps_per_epoch) {
  constexpr double kRounding = 1e-12;
  constexpr double kMaxSteps = 1e18;
  const double steps = epochs * static_cast<double>(steps_per_epoch);
  return static_cast<int64_t>(
      std::min(kMaxSteps, std::ceil(steps * (1 - kRounding))));
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_EPOCH_BATCHES_H_
