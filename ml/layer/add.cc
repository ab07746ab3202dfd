#include "ml/layer/add.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/add.h"
#include "ml/kernel/relu.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class AddPass : public LayerPass {
 public:
  AddPass(Device& device, int64_t size, AddEpilogue epilogue)
      : device_(device), size_(size), epilogue_(epilogue) {}

  // From left to right; a single input is added to nothing.
  absl::Status RunForward(const Forward& pass) override {
    const size_t last = pass.x.size() - 1;
    if (last == 0) return Finish(pass.x[0], pass.y);
    ConstElements sum = pass.x[0];
    for (size_t i = 1; i <= last; ++i) {
      RETURN_IF_ERROR(Add(device_, sum, pass.x[i], size_,
                          i == last ? epilogue_ : AddEpilogue::kNone, pass.y));
      sum = pass.y;
    }
    return absl::OkStatus();
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (epilogue_ == AddEpilogue::kNone) return absl::OkStatus();
    return ReluGradient(device_, pass.y, pass.dy, size_, pass.dy);
  }

  // For who does not ask PassesGradientOn().
  absl::Status RunInputGradients(const Backward& pass) override {
    for (const Elements& dx : pass.dx) {
      if (dx == nullptr) continue;
      RETURN_IF_ERROR(Copy(pass.dy, dx));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Finish(ConstElements x, Elements y) {
    if (epilogue_ == AddEpilogue::kNone) return Copy(x, y);
    return Relu(device_, x, size_, y);
  }

  absl::Status Copy(ConstElements from, Elements to) {
    return device_.Copy(Device::Stream::kCompute, from, size_, to);
  }

  Device& device_;
  const int64_t size_;
  const AddEpilogue epilogue_;
};

class AddLayer : public Layer {
 public:
  AddLayer(const Shape& shape, AddEpilogue epilogue) : epilogue_(epilogue) {
    output_shape_ = shape;
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<AddLayer>(output_shape(), AddEpilogue::kRelu);
  }
  bool KeepsOutputGradient() const override {
    return epilogue_ == AddEpilogue::kNone;
  }
  bool IsSum() const override { return epilogue_ == AddEpilogue::kNone; }
  bool PassesGradientOn(size_t /*input*/) const override { return true; }
  bool IsRecordable() const override { return true; }
  Bfloat16Use bfloat16_use() const override {
    return Bfloat16Use::kIfInputsAre;
  }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<AddPass>(
        device, examples * ElementsOf(output_shape()), epilogue_);
  }

 private:
  const AddEpilogue epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeAdd(
    absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  const Shape& shape = inputs[0].shape;
  for (const LayerInput& input : inputs) {
    if (input.shape == shape) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("inputs of shapes ", ShapeText(shape), " and ",
                     ShapeText(input.shape), " cannot be added"));
  }
  return std::make_unique<AddLayer>(shape, AddEpilogue::kNone);
}

constinit const LayerKind kAddKind = {
    .field = job::Layer::kAdd,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeAdd(inputs); },
};

}  // namespace parasol
