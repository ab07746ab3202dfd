#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/multiply.h"

namespace parasol::cpu {
namespace {

PARASOL_MULTIVERSION void Product(const float* a, const float* b, int64_t size,
                                  float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = a[i] * b[i];
}

PARASOL_MULTIVERSION void ProductAndSum(const float* a, const float* b,
                                        const float* addend, int64_t size,
                                        float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] = a[i] * b[i] + addend[i];
}

}  // namespace

absl::Status Multiply(Device& device, const float* a, const float* b,
                      const float* addend, int64_t size, float* y) {
  if (addend == nullptr) {
    Product(a, b, size, y);
  } else {
    ProductAndSum(a, b, addend, size, y);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
