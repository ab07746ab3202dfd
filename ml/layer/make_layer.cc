#include "ml/layer/make_layer.h"

#include "absl/status/status.h"
#include "ml/layer/activation.h"
#include "ml/layer/add.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/dense.h"
#include "ml/layer/flatten.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<const Layer>> MakeLayer(
    const job::Layer& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  switch (spec.kind_case()) {
    case job::Layer::kDense:
      return MakeDense(spec.dense(), inputs);
    case job::Layer::kActivation:
      return MakeActivation(spec.activation(), inputs);
    case job::Layer::kAdd:
      return MakeAdd(inputs);
    case job::Layer::kCustom:
      return MakeCustom(spec.custom(), inputs);
    case job::Layer::kFlatten:
      return MakeFlatten(inputs);
    default:
      return absl::InvalidArgumentError("has no kind: dense, activation, …");
  }
}

}  // namespace parasol
