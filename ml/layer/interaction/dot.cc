#include "ml/layer/interaction/dot.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/interaction/dot_products.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class DotPass final : public LayerPass {
 public:
  // `scales` has room for a scale of each row of both inputs, or is empty if
  // they are not normalized.
  DotPass(Device& device, const RowPairs& shape, Array<float> scales)
      : device_(device), shape_(shape), scales_(std::move(scales)) {}

  absl::Status RunForward(const Forward& pass) override {
    if (scales_.size() > 0) {
      RETURN_IF_ERROR(InverseNorms(device_, shape_.examples * shape_.a_rows,
                                   shape_.width, pass.x[0], AScales()));
      RETURN_IF_ERROR(InverseNorms(device_, shape_.examples * shape_.b_rows,
                                   shape_.width, pass.x[1], BScales()));
    }
    return DotProducts(device_, shape_, {pass.x[0], AScales()},
                       {pass.x[1], BScales()}, pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return DotProductGradients(device_, shape_, {pass.x[0], AScales()},
                               {pass.x[1], BScales()}, pass.y, pass.dy,
                               pass.dx[0], pass.dx[1]);
  }

 private:
  float* AScales() const {
    return scales_.size() == 0 ? nullptr : scales_.data();
  }
  float* BScales() const {
    return scales_.size() == 0
               ? nullptr
               : scales_.data() + shape_.examples * shape_.a_rows;
  }

  Device& device_;
  const RowPairs shape_;
  const Array<float> scales_;
};

class DotLayer final : public Layer {
 public:
  // `shape`: of one example.
  DotLayer(const RowPairs& shape, bool normalize, Shape output_shape)
      : shape_(shape), normalize_(normalize) {
    output_shape_ = std::move(output_shape);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    RowPairs shape = shape_;
    shape.examples = examples;
    Array<float> scales;
    if (normalize_) {
      ASSIGN_OR_RETURN(scales, device.NewArray<float>(
                                   examples * (shape.a_rows + shape.b_rows)));
    }
    return std::make_unique<DotPass>(device, shape, std::move(scales));
  }

 private:
  const RowPairs shape_;
  const bool normalize_;
};

void FillDefaults(job::Dot& spec) {
  PARASOL_SET_DEFAULT(spec, normalize, false);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeDot(
    const job::Dot& spec, absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("dot has two inputs, not ", inputs.size()));
  }
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const auto is_good = [](const Shape& shape) {
    return shape.size() == 1 || shape.size() == 2;
  };
  if (!is_good(a) || !is_good(b) || a.back() != b.back()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dot takes two inputs [width] or [n, width] of one width, not [",
        absl::StrJoin(a, ", "), "] and [", absl::StrJoin(b, ", "), "]"));
  }
  Shape output_shape(a.begin(), a.end() - 1);
  output_shape.insert(output_shape.end(), b.begin(), b.end() - 1);
  if (output_shape.empty()) output_shape = {1};
  return std::make_unique<DotLayer>(RowPairs{.examples = 1,
                                             .a_rows = a.size() == 1 ? 1 : a[0],
                                             .b_rows = b.size() == 1 ? 1 : b[0],
                                             .width = a.back()},
                                    spec.normalize(), std::move(output_shape));
}

constinit const LayerKind kDotKind = {
    .field = job::Layer::kDot,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_dot()); },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeDot(layer.dot(), inputs); },
};

}  // namespace parasol
