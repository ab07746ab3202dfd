#ifndef PARASOL_ML_KERNEL_INTERACTION_DOT_INTERACTION_H_
#define PARASOL_ML_KERNEL_INTERACTION_DOT_INTERACTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// The shape of `examples` matrices x [fields, width], which lie one after
// another, and the choice of pairs of fields f >= g, or f > g without
// `with_itself`.
struct FieldPairs {
  int64_t examples = 0;
  int64_t fields = 0;
  int64_t width = 0;
  bool with_itself = false;

  // Number of pairs whose f is below `field`; with `field` = `fields` the
  // number of all pairs. Pair (f, g) has the place before(f) + g.
  constexpr int64_t before(int64_t field) const {
    return with_itself ? field * (field + 1) / 2 : field * (field - 1) / 2;
  }
  constexpr int64_t count() const { return before(fields); }
};

// Both functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.

// Computes y [examples, count()], y[before(f) + g] = x[f] · x[g]: the lower
// triangle of x · xᵀ, row by row (Naumov et al., "Deep Learning Recommendation
// Model", 2019).
absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y);

// Computes dx [examples, fields, width] from x and dy [examples, count()].
absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy, float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y);
absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy, float* dx);
}  // namespace cpu

namespace cuda {
absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y);
absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy, float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_INTERACTION_DOT_INTERACTION_H_
