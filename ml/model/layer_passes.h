#ifndef PARASOL_ML_MODEL_LAYER_PASSES_H_
#define PARASOL_ML_MODEL_LAYER_PASSES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/layer.h"
#include "ml/model/plan.h"

namespace parasol {

// The passes of a plan's steps for batches of several sizes. The passes of the
// sizes used last are kept, because an epoch's last batch is smaller. Not
// thread-safe.
class LayerPasses {
 public:
  static constexpr size_t kMaxSizes = 4;

  // `plan` and `device` must outlive this object.
  LayerPasses(const Plan& plan, Device& device)
      : plan_(plan), device_(device) {}

  // Returns the passes for batches of `examples` examples, one for each step.
  // Valid until the next call.
  //   ResourceExhausted  the device is full.
  absl::StatusOr<absl::Span<const std::unique_ptr<LayerPass>>> For(
      int64_t examples);

 private:
  struct Set {
    int64_t examples = 0;
    std::vector<std::unique_ptr<LayerPass>> passes;
  };

  const Plan& plan_;
  Device& device_;
  std::vector<Set> sets_;  // the set used last comes first
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_LAYER_PASSES_H_
