#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ml/kernel/softmax_cross_entropy.h"

namespace parasol::cpu {

absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out) {
  const int64_t classes = logits.columns;
  const float mean = 1.0f / static_cast<float>(logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row) {
    const float* const z = logits.data + row * classes;
    const int32_t label = labels[row];
    const float* const largest = std::max_element(z, z + classes);
    float sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(z[i] - *largest);
    out.loss[row] = std::log(sum) - (z[label] - *largest);
    out.correct[row] = largest - z == label;
    if (out.gradient == nullptr) continue;
    float* const gradient = out.gradient + row * classes;
    const float scale = mean / sum;
    for (int64_t i = 0; i < classes; ++i) {
      gradient[i] = std::exp(z[i] - *largest) * scale;
    }
    gradient[label] -= mean;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
