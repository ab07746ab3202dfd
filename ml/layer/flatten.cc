#include "ml/layer/flatten.h"

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(int64_t elements) { output_shape_ = {elements}; }

  bool IsView() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(Device&,
                                                     int64_t) const override {
    return absl::UnimplementedError("flatten computes nothing");
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeFlatten(
    absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  return std::make_unique<FlattenLayer>(ElementsOf(shape));
}

constinit const LayerKind kFlattenKind = {
    .field = job::Layer::kFlatten,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeFlatten(inputs); },
};

}  // namespace parasol
