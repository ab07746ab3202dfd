#include <cstdint>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/relu.h"

namespace parasol::cpu {
namespace {

// Elements to a thread.
constexpr int64_t kGrain = 1 << 14;

// Written so that NaN stays NaN.
PARASOL_MULTIVERSION
void Clamp(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

// Both are read whatever y is: a load that depends on it would be a branch.
PARASOL_MULTIVERSION
void PassWherePositive(const float* y, const float* dy, int64_t size,
                       float* dx) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float gradient = dy[i];
    dx[i] = y[i] > 0 ? gradient : 0;
  }
}

}  // namespace

absl::Status Relu(Device& device, const float* x, int64_t size, float* y) {
  ParallelFor(device, size, kGrain,
              [&](int64_t part, int64_t begin, int64_t end) {
                Clamp(x + begin, end - begin, y + begin);
              });
  return absl::OkStatus();
}

absl::Status ReluGradient(Device& device, const float* y, const float* dy,
                          int64_t size, float* dx) {
  ParallelFor(
      device, size, kGrain, [&](int64_t part, int64_t begin, int64_t end) {
        PassWherePositive(y + begin, dy + begin, end - begin, dx + begin);
      });
  return absl::OkStatus();
}

}  // namespace parasol::cpu
