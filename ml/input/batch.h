#ifndef PARASOL_ML_INPUT_BATCH_H_
#define PARASOL_ML_INPUT_BATCH_H_

#include <cstdint>
#include <vector>

namespace parasol {

// Examples that go through a model together. On the host, float32.
struct Batch {
  int64_t size = 0;                    // examples
  std::vector<int64_t> example_shape;  // {28, 28}
  std::vector<float> features;         // [size, example_shape...], row-major
  std::vector<int32_t> labels;         // [size]
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BATCH_H_
