#ifndef PARASOL_ML_MODEL_TESTING_CORRECT_EXAMPLES_H_
#define PARASOL_ML_MODEL_TESTING_CORRECT_EXAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ml/input/feature/batch.h"

namespace parasol {

// Returns the number of examples whose largest output, the first one of
// several, is at the index of the label's class; 0 if the batch has labels of
// its own for each output. `outputs` is [batch.size, classes].
inline int64_t CorrectExamples(const Batch& batch,
                               absl::Span<const float> outputs) {
  if (batch.labels.empty()) return 0;
  const size_t classes = outputs.size() / batch.size;
  int64_t correct = 0;
  for (int64_t i = 0; i < batch.size; ++i) {
    const absl::Span<const float> row = outputs.subspan(i * classes, classes);
    const auto largest = std::max_element(row.begin(), row.end());
    correct += largest - row.begin() == batch.labels[i];
  }
  return correct;
}

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_TESTING_CORRECT_EXAMPLES_H_
