#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/multiversion.h"
#include "ml/kernel/loss/candidate_softmax.h"
#include "ml/kernel/loss/lane_sum.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

// Makes logits of the products of example `row`, in place; -∞ for no
// candidates. Returns the largest number among them; of a row with NaN any
// value will do, as the sum of its exponentials is NaN.
PARASOL_MULTIVERSION float MakeLogits(const CandidateBatch& batch, int64_t row,
                                      float* products) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const int32_t own = batch.candidates[row];
  const float mine = products[row];
  const float scale = 1 / batch.temperature;
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t j = 0; j < batch.size; ++j) {
    const bool is_candidate =
        batch.candidates[j] >= 0 && batch.candidates[j] != own;
    products[j] = is_candidate ? products[j] * scale : kNone;
  }
  products[row] = mine * scale;
  if (batch.log_probabilities != nullptr) {
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < batch.size; ++j) {
      products[j] -= batch.log_probabilities[j];
    }
  }
  float largest = products[row];
  for (int64_t j = 0; j < batch.size; ++j) {
    if (products[j] > largest) largest = products[j];
  }
  return largest;
}

// Makes exponentials of the logits, in place, and returns their sum.
PARASOL_MULTIVERSION float MakeExps(int64_t size, float largest,
                                    float* logits) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t j = 0; j < size; ++j) {
    logits[j] = vector_math::Exp(logits[j] - largest);
  }
  return LaneSum(size, [logits](int64_t j) { return logits[j]; });
}

PARASOL_MULTIVERSION void Scale(int64_t size, float factor, float* values) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t j = 0; j < size; ++j) values[j] *= factor;
}

}  // namespace

absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses) {
  for (int64_t r = 0; r < batch.rows; ++r) {
    const int64_t i = batch.first + r;
    float* const row = products + r * batch.size;
    if (batch.candidates[i] < 0) {
      losses[r] = 0;
      std::fill_n(row, batch.size, 0.0f);
      continue;
    }
    const float weight = batch.weights == nullptr ? 1 : batch.weights[i];
    const float largest = MakeLogits(batch, i, row);
    const float mine = row[i];
    const float sum = MakeExps(batch.size, largest, row);
    losses[r] = weight * (std::log(sum) - (mine - largest));
    if (!with_gradient) continue;
    const float scale =
        weight / (static_cast<float>(batch.size) * batch.temperature);
    Scale(batch.size, scale / sum, row);
    row[i] -= scale;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
