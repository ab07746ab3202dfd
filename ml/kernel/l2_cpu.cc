#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/l2.h"

namespace parasol::cpu {
namespace {

// Partial sums that a vector register holds, of blocks that are short enough
// for single precision; the blocks are added up in double.
constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = 4096;

PARASOL_MULTIVERSION float SumOfSquares(const float* w, int64_t size) {
  float partial[kLanes] = {};
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      partial[lane] += w[i + lane] * w[i + lane];
    }
  }
  float sum = 0;
  for (int64_t i = whole; i < size; ++i) sum += w[i] * w[i];
  for (const float part : partial) sum += part;
  return sum;
}

PARASOL_MULTIVERSION void AddScaled(const float* w, int64_t size, float scale,
                                    float* sum) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) sum[i] += scale * w[i];
}

}  // namespace

absl::Status L2Loss(Device& device, const float* w, int64_t size, float l2,
                    float* loss) {
  double sum = 0;
  for (int64_t i = 0; i < size; i += kBlock) {
    sum += SumOfSquares(w + i, std::min(kBlock, size - i));
  }
  *loss = l2 * sum;
  return absl::OkStatus();
}

absl::Status AddL2Gradient(Device& device, const float* w, int64_t size,
                           float l2, float* gradient) {
  AddScaled(w, size, 2 * l2, gradient);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
