#include <cstdint>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/add.h"

namespace parasol::cpu {
namespace {

// Elements to a thread.
constexpr int64_t kGrain = 1 << 14;

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
  const auto sum = epilogue == AddEpilogue::kRelu ? SumWithRelu : Sum;
  ParallelFor(device, size, kGrain,
              [&](int64_t /*part*/, int64_t begin, int64_t end) {
                sum(a + begin, b + begin, end - begin, y + begin);
              });
  return absl::OkStatus();
}

}  // namespace parasol::cpu
