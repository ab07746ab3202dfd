#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/add.h"

namespace parasol::cpu {
namespace {

PARASOL_MULTIVERSION void Sum(const float* a, const float* b, int64_t size,
                              float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = a[i] + b[i];
}

PARASOL_MULTIVERSION void SumWithRelu(const float* a, const float* b,
                                      int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum < 0 ? 0 : sum;
  }
}

}  // namespace

absl::Status Add(Device& device, const float* a, const float* b, int64_t size,
                 AddEpilogue epilogue, float* y) {
  if (epilogue == AddEpilogue::kRelu) {
    SumWithRelu(a, b, size, y);
  } else {
    Sum(a, b, size, y);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
