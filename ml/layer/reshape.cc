#include "ml/layer/reshape.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

// The axis that takes what the others leave.
constexpr int64_t kRest = -1;

class ReshapeLayer final : public Layer {
 public:
  explicit ReshapeLayer(Shape shape) { output_shape_ = std::move(shape); }

  bool IsView() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(Device&,
                                                     int64_t) const override {
    return absl::UnimplementedError("reshape computes nothing");
  }
};

absl::Status CheckShape(const std::string& path, const job::Reshape& spec) {
  if (spec.shape().empty()) return Missing(path);
  constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();
  int64_t elements = 1;
  for (const int64_t axis : spec.shape()) {
    if (axis == kRest) continue;
    if (axis < 1 || axis > kMaxElements / elements) {
      return Fault(path, absl::StrCat(ShapeText(spec.shape()),
                                      " has an axis below 1 that is not -1, "
                                      "or more than ",
                                      kMaxElements, " elements"));
    }
    elements *= axis;
  }
  if (std::count(spec.shape().begin(), spec.shape().end(), kRest) > 1) {
    return Fault(path, absl::StrCat(ShapeText(spec.shape()),
                                    " has more than one axis of -1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeReshape(
    const job::Reshape& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape from, OnlyDenseInput(inputs));
  RETURN_IF_ERROR(CheckShape("reshape.shape", spec));
  Shape to(spec.shape().begin(), spec.shape().end());
  const auto rest = std::find(to.begin(), to.end(), kRest);
  if (rest != to.end()) {
    *rest = 1;
    *rest = ElementsOf(from) / ElementsOf(to);
  }
  if (ElementsOf(to) != ElementsOf(from)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reshape: an input ", ShapeText(from),
        " does not have the elements of ", ShapeText(spec.shape())));
  }
  return std::make_unique<ReshapeLayer>(std::move(to));
}

constinit const LayerKind kReshapeKind = {
    .field = job::Layer::kReshape,
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckShape(absl::StrCat(path, ".shape"), layer.reshape());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeReshape(layer.reshape(), inputs); },
};

}  // namespace parasol
