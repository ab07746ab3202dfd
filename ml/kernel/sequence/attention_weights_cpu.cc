#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/sequence/attention_weights.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

// A score that no softmax of others sees.
constexpr float kUnseen = std::numeric_limits<float>::lowest();

void HideMasked(const float* mask, int64_t keys, float* scores) {
  for (int64_t i = 0; i < keys; ++i) {
    if (!(mask[i] > .5f)) scores[i] = kUnseen;
  }
}

// The largest score; NaN stays in the sum of what follows.
PARASOL_MULTIVERSION float Largest(const float* scores, int64_t keys) {
  float largest = kUnseen;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < keys; ++i) {
    largest = scores[i] > largest ? scores[i] : largest;
  }
  return largest;
}

PARASOL_MULTIVERSION void Softmax(float scale, float largest, int64_t keys,
                                  float* scores) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < keys; ++i) {
    const float power = vector_math::Exp((scores[i] - largest) * scale);
    scores[i] = scores[i] == kUnseen ? 0 : power;
    sum += scores[i];
  }
  const float factor = 1 / sum;
  for (int64_t i = 0; i < keys; ++i) scores[i] *= factor;
}

PARASOL_MULTIVERSION void Gradient(const float* weights, float scale,
                                   int64_t keys, float* gradients) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < keys; ++i) dot += weights[i] * gradients[i];
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < keys; ++i) {
    gradients[i] = scale * weights[i] * (gradients[i] - dot);
  }
}

// Number of weights that one thread computes in some 10 µs.
constexpr int64_t kGrain = 1 << 13;

// Calls body(row) for each row.
template <typename Body>
void ForEachRow(Device& device, const AttentionShape& shape, const Body& body) {
  ParallelFor(device, shape.rows(), kGrain / shape.keys + 1,
              [&body](int64_t /*part*/, int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) body(row);
              });
}

}  // namespace

absl::Status AttentionWeights(Device& device, const AttentionShape& shape,
                              const float* mask, float* scores) {
  ForEachRow(device, shape, [&](int64_t row) {
    float* const begin = scores + row * shape.keys;
    const int64_t visible = shape.Visible(row);
    std::fill(begin + visible, begin + shape.keys, 0.0f);
    if (mask != nullptr) HideMasked(shape.MaskOf(mask, row), visible, begin);
    const float largest = Largest(begin, visible);
    const bool sees_none = mask != nullptr && largest == kUnseen &&
                           std::all_of(begin, begin + visible, [](float score) {
                             return score == kUnseen;
                           });
    if (sees_none) {
      std::fill(begin, begin + visible, 0.0f);
    } else {
      Softmax(shape.scale, largest, visible, begin);
    }
  });
  return absl::OkStatus();
}

absl::Status AttentionWeightsGradient(Device& device,
                                      const AttentionShape& shape,
                                      const float* weights, float* gradients) {
  ForEachRow(device, shape, [&](int64_t row) {
    Gradient(weights + row * shape.keys, shape.scale, shape.keys,
             gradients + row * shape.keys);
  });
  return absl::OkStatus();
}

}  // namespace parasol::cpu
