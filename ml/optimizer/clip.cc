#include "ml/optimizer/clip.h"

#include <cmath>
#include <cstddef>

#include "base/multiversion.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

// Sums of their own, which a vector's lanes can hold: the order of additions is
// this, whatever the machine.
constexpr size_t kLanes = 16;

PARASOL_MULTIVERSION
double SumOfSquares(const float* values, size_t count) {
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (size_t lane = 0; i < count; ++i, ++lane) {
    const double value = values[i];
    sums[lane] += value * value;
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

PARASOL_MULTIVERSION
void Clamp(float limit, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float value = values[i];
    const float at_most = value > limit ? limit : value;
    values[i] = at_most < -limit ? -limit : at_most;
  }
}

PARASOL_MULTIVERSION
void Scale(double factor, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(values[i] * factor);
  }
}

}  // namespace

void ClipByValue(double limit, absl::Span<float> gradient) {
  Clamp(static_cast<float>(limit), gradient.data(), gradient.size());
}

void ClipByNorm(double limit, absl::Span<float> gradient) {
  const double norm = std::sqrt(SumOfSquares(gradient.data(), gradient.size()));
  if (norm <= limit) return;
  // An infinite norm gives a factor of 0: 0 times an infinity is NaN.
  Scale(limit / norm, gradient.data(), gradient.size());
}

void ClipByGlobalNorm(double limit,
                      absl::Span<const absl::Span<float>> gradients) {
  double sum = 0;
  for (const absl::Span<float> gradient : gradients) {
    sum += SumOfSquares(gradient.data(), gradient.size());
  }
  const double norm = std::sqrt(sum);
  if (norm <= limit) return;
  const double factor = std::isfinite(norm) ? limit / norm : std::nan("");
  for (const absl::Span<float> gradient : gradients) {
    Scale(factor, gradient.data(), gradient.size());
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
