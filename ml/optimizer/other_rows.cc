#include <algorithm>
#include <cstring>
#include <vector>

#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

// Zeros and saved values of so many rows stay in the cache.
constexpr size_t kElements = 4096;

}  // namespace

void Optimizer::ApplyOtherRows(int64_t iterations,
                               const RowUpdate& update) const {
  const OtherRows other = other_rows();
  if (other == OtherRows::kUntouched || update.width == 0) return;
  const size_t width = update.width;
  const size_t rows_at_once = std::max<size_t>(1, kElements / width);
  const std::vector<float> zeros(rows_at_once * width);
  std::vector<float> values(other == OtherRows::kSlots ? zeros.size() : 0);
  for (size_t first = 0; first < update.count; first += rows_at_once) {
    const size_t count = std::min(rows_at_once, update.count - first);
    float* const* rows = update.rows + first;
    const auto row_of = [&](size_t i) { return values.data() + i * width; };
    const size_t bytes = values.empty() ? 0 : width * sizeof(float);
    for (size_t i = 0; bytes > 0 && i < count; ++i) {
      std::memcpy(row_of(i), rows[i], bytes);
    }
    ApplyRows(iterations,
              {.count = count,
               .width = width,
               .gradients = reinterpret_cast<const std::byte*>(zeros.data()),
               .rows = rows});
    for (size_t i = 0; bytes > 0 && i < count; ++i) {
      std::memcpy(rows[i], row_of(i), bytes);
    }
  }
}

}  // namespace parasol
