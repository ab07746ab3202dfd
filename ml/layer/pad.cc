#include "ml/layer/pad.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/kernel/image/pad.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

// Zeros on one side of one axis.
constexpr int64_t kMaxZeros = 1 << 15;

class PadPass : public LayerPass {
 public:
  PadPass(Device& device, const PadShape& shape)
      : device_(device), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return Pad(device_, shape_, pass.x[0], pass.y);
  }
  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return PadGradient(device_, shape_, pass.dy, pass.dx[0]);
  }

 private:
  Device& device_;
  const PadShape shape_;
};

class PadLayer : public Layer {
 public:
  PadLayer(const job::Pad& spec, const Shape& input)
      : spec_(spec), input_(input) {
    for (size_t i = 0; i < input.size(); ++i) {
      output_shape_.push_back(spec.before(i) + input[i] + spec.after(i));
    }
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  Bfloat16Use bfloat16_use() const override {
    return Bfloat16Use::kIfInputsAre;
  }

  // The examples are an axis too, without padding.
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    PadShape shape = {.axes = input_.size() + 1, .input = {examples}};
    for (size_t i = 0; i < input_.size(); ++i) {
      shape.input[i + 1] = input_[i];
      shape.before[i + 1] = spec_.before(i);
      shape.after[i + 1] = spec_.after(i);
    }
    return std::make_unique<PadPass>(device, shape);
  }

 private:
  const job::Pad spec_;
  const Shape input_;
};

absl::Status CheckZeros(absl::string_view name, absl::Span<const int64_t> zeros,
                        size_t axes) {
  if (zeros.size() != axes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is [", absl::StrJoin(zeros, ", "),
                     "]: it needs a number for each of ", axes, " axes"));
  }
  for (const int64_t number : zeros) {
    if (number >= 0 && number <= kMaxZeros) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", number, ", not between 0 and ", kMaxZeros));
  }
  return absl::OkStatus();
}

absl::Status CheckRanges(const std::string& path, const job::Pad& spec) {
  if (spec.before_size() != spec.after_size()) {
    return Fault(path, absl::StrCat("before has ", spec.before_size(),
                                    " numbers and after ", spec.after_size(),
                                    ": both need one for each axis"));
  }
  RETURN_IF_ERROR(RequireAllInRange(absl::StrCat(path, ".before"),
                                    spec.before(), 0, kMaxInt));
  return RequireAllInRange(absl::StrCat(path, ".after"), spec.after(), 0,
                           kMaxInt);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakePad(
    const job::Pad& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape input, OnlyDenseInput(inputs));
  if (input.size() + 1 > PadShape::kMaxAxes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes at most ", PadShape::kMaxAxes - 1, " axes, not ", input.size()));
  }
  RETURN_IF_ERROR(CheckZeros("before", spec.before(), input.size()));
  RETURN_IF_ERROR(CheckZeros("after", spec.after(), input.size()));
  return std::make_unique<PadLayer>(spec, input);
}

constinit const LayerKind kPadKind = {
    .field = job::Layer::kPad,
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.pad());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakePad(layer.pad(), inputs); },
};

}  // namespace parasol
