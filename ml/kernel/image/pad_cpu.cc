#include <algorithm>
#include <cstdint>

#include "ml/kernel/image/pad.h"

namespace parasol::cpu {
namespace {

// Calls body(x, y, size) for each row along the last axis of x: where it begins
// in x and in y.
template <typename Body>
void ForEachRow(const PadShape& s, Body body) {
  const int64_t size = s.input[s.axes - 1];
  const int64_t rows = s.x_size() / size;
  for (int64_t row = 0; row < rows; ++row) {
    // From the last axis to the first: the row's index on it, and how many
    // elements of y one step along it is.
    int64_t rest = row;
    int64_t y = s.before[s.axes - 1];
    int64_t step = s.before[s.axes - 1] + size + s.after[s.axes - 1];
    for (size_t axis = s.axes - 1; axis-- > 0;) {
      y += (rest % s.input[axis] + s.before[axis]) * step;
      rest /= s.input[axis];
      step *= s.before[axis] + s.input[axis] + s.after[axis];
    }
    body(row * size, y, size);
  }
}

}  // namespace

absl::Status Pad(Device& device, const PadShape& shape, const float* x,
                 float* y) {
  std::fill_n(y, shape.y_size(), 0.0f);
  ForEachRow(shape, [&](int64_t from, int64_t to, int64_t size) {
    std::copy_n(x + from, size, y + to);
  });
  return absl::OkStatus();
}

absl::Status PadGradient(Device& device, const PadShape& shape, const float* dy,
                         float* dx) {
  ForEachRow(shape, [&](int64_t to, int64_t from, int64_t size) {
    std::copy_n(dy + from, size, dx + to);
  });
  return absl::OkStatus();
}

}  // namespace parasol::cpu
