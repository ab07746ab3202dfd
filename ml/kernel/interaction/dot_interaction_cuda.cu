#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/interaction/dot_interaction.h"

namespace parasol::cuda {
namespace {

// FieldPairs::before() for a kernel.
__device__ int64_t Before(const FieldPairs& shape, int64_t field) {
  return shape.with_itself ? field * (field + 1) / 2 : field * (field - 1) / 2;
}

// Writes the product of fields f and g of an example, element i = (example, f,
// g), if they are a pair: f > g, or f = g in pairs of a field with itself.
struct ProductOf {
  FieldPairs shape;
  int64_t count;
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    const int64_t g = i % shape.fields;
    const int64_t f = i / shape.fields % shape.fields;
    if (g > f || (g == f && !shape.with_itself)) return;
    const int64_t example = i / (shape.fields * shape.fields);
    const float* const matrix = x + example * shape.fields * shape.width;
    float sum = 0;
    for (int64_t k = 0; k < shape.width; ++k) {
      sum += matrix[f * shape.width + k] * matrix[g * shape.width + k];
    }
    y[example * count + Before(shape, f) + g] = sum;
  }
};

// The gradient of one element x[f, k] of an example.
struct GradientOf {
  FieldPairs shape;
  int64_t count;
  const float* x;
  const float* dy;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t k = i % shape.width;
    const int64_t f = i / shape.width % shape.fields;
    const int64_t example = i / (shape.width * shape.fields);
    const float* const column = x + example * shape.fields * shape.width + k;
    const float* const pairs = dy + example * count;
    float sum = 0;
    for (int64_t g = 0; g < f; ++g) {
      sum += pairs[Before(shape, f) + g] * column[g * shape.width];
    }
    if (shape.with_itself) {
      sum += 2 * pairs[Before(shape, f) + f] * column[f * shape.width];
    }
    for (int64_t g = f + 1; g < shape.fields; ++g) {
      sum += pairs[Before(shape, g) + f] * column[g * shape.width];
    }
    dx[i] = sum;
  }
};

}  // namespace

absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y) {
  return ForEach(device, "dot interaction",
                 shape.examples * shape.fields * shape.fields,
                 ProductOf{shape, shape.count(), x, y});
}

absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy,
                                    float* dx) {
  return ForEach(device, "gradient of dot interaction",
                 shape.examples * shape.fields * shape.width,
                 GradientOf{shape, shape.count(), x, dy, dx});
}

}  // namespace parasol::cuda
