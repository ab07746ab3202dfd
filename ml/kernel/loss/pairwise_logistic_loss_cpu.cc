#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/loss/pairwise_logistic_loss.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

// Number of terms, each up to 2, whose product is taken before its logarithm.
constexpr int64_t kTerms = 32;

// Scores and shares w / (rows · |L|) of the examples, by their places.
struct Ranked {
  float* scores;
  float* shares;
};

void Gather(const LossBatch& batch, const PairRanges* pairs, Ranked ranked) {
  const int64_t rows = batch.outputs.rows;
  for (int64_t i = 0; i < rows; ++i) {
    const PairRanges& own = pairs[i];
    const float weight =
        batch.weights == nullptr ? 1 : batch.weights[own.example];
    const int32_t lower = own.lower_end - own.begin;
    ranked.scores[i] = batch.outputs.data[own.example];
    ranked.shares[i] =
        lower == 0 ? 0.0f : weight / (static_cast<float>(rows) * lower);
  }
}

// Σ log(1 + exp(others - own)).
PARASOL_MULTIVERSION float SumOfLosses(const float* others, int64_t size,
                                       float own) {
  float sum = 0;
  for (int64_t first = 0; first < size; first += kTerms) {
    const int64_t end = std::min(size, first + kTerms);
    float product = 1;
#pragma omp simd reduction(+ : sum) reduction(* : product)
    for (int64_t i = first; i < end; ++i) {
      const float z = others[i] - own;
      // Written so that NaN stays NaN.
      sum += z < 0 ? 0.0f : z;
      product *= 1 + vector_math::Exp(-std::fabs(z));
    }
    sum += std::log(product);
  }
  return sum;
}

// Σ σ(others - own).
PARASOL_MULTIVERSION float SumOfSigmoids(const float* others, int64_t size,
                                         float own) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    sum += vector_math::Sigmoid(others[i] - own);
  }
  return sum;
}

// Σ shares · σ(own - others).
PARASOL_MULTIVERSION float SumOfShares(const float* others, const float* shares,
                                       int64_t size, float own) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    sum += shares[i] * vector_math::Sigmoid(own - others[i]);
  }
  return sum;
}

}  // namespace

absl::Status PairwiseLogisticLoss(Device& device, const LossBatch& batch,
                                  const LossResult& out) {
  const int64_t rows = batch.outputs.rows;
  const auto* const pairs = reinterpret_cast<const PairRanges*>(batch.integers);
  const Ranked ranked = {batch.scratch, batch.scratch + rows};
  Gather(batch, pairs, ranked);
  for (int64_t i = 0; i < rows; ++i) {
    const PairRanges& own = pairs[i];
    const float score = ranked.scores[i];
    const int64_t lower = own.lower_end - own.begin;
    const float* const below = ranked.scores + own.begin;
    out.losses[own.example] = lower == 0 ? 0.0f
                                         : ranked.shares[i] *
                                               static_cast<float>(rows) *
                                               SumOfLosses(below, lower, score);
    if (out.gradient == nullptr) continue;
    out.gradient[own.example] =
        SumOfShares(ranked.scores + own.higher_begin,
                    ranked.shares + own.higher_begin,
                    own.end - own.higher_begin, score) -
        ranked.shares[i] * SumOfSigmoids(below, lower, score);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
