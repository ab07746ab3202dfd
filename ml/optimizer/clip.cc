#include "ml/optimizer/clip.h"

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/rule/clip.h"
#include "ml/optimizer/rule/lane_sum.h"

namespace parasol {
namespace {

PARASOL_MULTIVERSION
double SumOfChunk(const float* values, int64_t count) {
  double lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      lanes[lane] += Square(values[i + lane]);
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    lanes[lane] += Square(values[i]);
  }
  return LaneSum::Fold(lanes);
}

double SumOfSquares(absl::Span<const float> values) {
  // A sum of one term is the term.
  if (values.size() <= kSumChunk) {
    return SumOfChunk(values.data(), values.size());
  }
  LaneSum sum;
  for (size_t i = 0; i < values.size(); i += kSumChunk) {
    const absl::Span<const float> chunk = values.subspan(i, kSumChunk);
    sum.Add(SumOfChunk(chunk.data(), chunk.size()));
  }
  return sum.Total();
}

PARASOL_MULTIVERSION
void ClampAll(float limit, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = Clamp(limit, values[i]);
}

PARASOL_MULTIVERSION
void ScaleAll(double factor, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = Scale(factor, values[i]);
}

}  // namespace

void ClipByValue(double limit, absl::Span<float> gradient) {
  ClampAll(static_cast<float>(limit), gradient.data(), gradient.size());
}

void ClipByNorm(double limit, absl::Span<float> gradient) {
  const double factor = NormFactor(limit, SumOfSquares(gradient));
  if (factor == 1) return;
  ScaleAll(factor, gradient.data(), gradient.size());
}

void ClipByGlobalNorm(double limit,
                      absl::Span<const absl::Span<float>> gradients) {
  LaneSum sum;
  for (const absl::Span<float> gradient : gradients) {
    sum.Add(SumOfSquares(gradient));
  }
  const double factor = GlobalNormFactor(limit, sum.Total());
  if (factor == 1) return;
  for (const absl::Span<float> gradient : gradients) {
    ScaleAll(factor, gradient.data(), gradient.size());
  }
}

absl::Status CheckClipping(const job::Optimizer& spec) {
  if (spec.has_clipvalue()) {
    RETURN_IF_ERROR(CheckPositive("clipvalue", spec.clipvalue()));
  }
  if (spec.has_clipnorm()) {
    RETURN_IF_ERROR(CheckPositive("clipnorm", spec.clipnorm()));
  }
  if (spec.has_global_clipnorm()) {
    RETURN_IF_ERROR(CheckPositive("global_clipnorm", spec.global_clipnorm()));
  }
  return absl::OkStatus();
}

}  // namespace parasol
