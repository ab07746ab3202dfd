#ifndef PARASOL_ML_LAYER_CONVERSION_H_
#define PARASOL_ML_LAYER_CONVERSION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ml/layer/layer.h"

namespace parasol {

// A layer whose output is its input, and whose dx is its dy, in another type of
// element: each array of a pass says its own. No job has one; a model puts it
// between layers of different types (ml/model/plan.h).
class Conversion final : public Layer {
 public:
  // `elements`: number of one example.
  explicit Conversion(int64_t elements) { output_shape_ = {elements}; }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override;
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVERSION_H_
