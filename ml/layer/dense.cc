#include "ml/layer/dense.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/relu.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/affine_fields.h"

namespace parasol {
namespace {

// Largest number of elements of one matrix: cuBLAS counts in int.
constexpr int64_t kMaxKernelElements = std::numeric_limits<int32_t>::max();

// Shapes of the matrices that a pass multiplies.
struct DenseShape {
  int64_t examples = 0;
  int64_t inputs = 0;
  int64_t units = 0;
  bool has_bias = false;
  Epilogue epilogue = Epilogue::kNone;
};

class DensePass final : public LayerPass {
 public:
  DensePass(Device& device, const DenseShape& shape)
      : device_(device), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return Affine(device_, Input(pass.x[0]), Kernel(pass.variables),
                  shape_.has_bias ? pass.variables[1] : nullptr,
                  shape_.epilogue, Output(pass.y));
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (shape_.epilogue == Epilogue::kRelu) {
      RETURN_IF_ERROR(ReluGradient(device_, pass.y, pass.dy,
                                   shape_.examples * shape_.units, pass.dy));
    }
    if (pass.gradients[0] == nullptr) return absl::OkStatus();
    return AffineVariableGradients(
        device_, Input(pass.x[0]), Output(pass.dy),
        {pass.gradients[0], shape_.inputs, shape_.units},
        shape_.has_bias ? pass.gradients[1] : nullptr);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return AffineInputGradient(device_, Output(pass.dy), Kernel(pass.variables),
                               {pass.dx[0], shape_.examples, shape_.inputs});
  }

 private:
  MatrixView Input(const float* x) const {
    return {x, shape_.examples, shape_.inputs};
  }
  MatrixView Kernel(absl::Span<const float* const> variables) const {
    return {variables[0], shape_.inputs, shape_.units};
  }
  MutableMatrixView Output(float* y) const {
    return {y, shape_.examples, shape_.units};
  }

  Device& device_;
  const DenseShape shape_;
};

class DenseLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  DenseLayer(const job::Dense& spec, int64_t inputs) : inputs_(inputs) {
    output_shape_ = {spec.units()};
    AddVariable("kernel", {inputs, spec.units()}, spec.kernel_l2());
    variables_[0].initializer = spec.kernel_initializer();
    if (!spec.use_bias()) return;
    AddVariable("bias", {spec.units()}, spec.bias_l2());
    variables_[1].initializer = spec.bias_initializer();
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    auto layer = std::make_unique<DenseLayer>(*this);
    layer->epilogue_ = Epilogue::kRelu;
    return layer;
  }

  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool SkipsGradients() const override { return true; }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<DensePass>(
        device, DenseShape{.examples = examples,
                           .inputs = inputs_,
                           .units = output_shape_[0],
                           .has_bias = variables_.size() > 1,
                           .epilogue = epilogue_});
  }

 private:
  void AddVariable(std::string name, Shape shape, double l2) {
    variables_.push_back({.name = std::move(name), .shape = std::move(shape)});
    variable_l2_.push_back(l2);
  }

  const int64_t inputs_;
  Epilogue epilogue_ = Epilogue::kNone;
};

void FillDefaults(job::Dense& spec) { FillAffine(spec); }

absl::Status CheckRanges(const std::string& path, const job::Dense& spec) {
  const std::string units = absl::StrCat(path, ".units");
  if (!spec.has_units()) return Missing(units);
  RETURN_IF_ERROR(RequireInRange(units, spec.units(), 1, kMaxInt));
  return CheckProduct(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeDense(
    const job::Dense& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  if (shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("dense needs a flat input, not ", ShapeText(shape),
                     ": put flatten {} before"));
  }
  if (spec.units() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dense.units is ", spec.units(), ", not positive"));
  }
  if (spec.units() > kMaxKernelElements / shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel: shape [", shape[0], ", ", spec.units(),
                     "] has more than ", kMaxKernelElements, " elements"));
  }
  job::Dense filled = spec;
  FillDefaults(filled);
  return WithActivation(std::make_unique<DenseLayer>(filled, shape[0]),
                        filled.activation());
}

constinit const LayerKind kDenseKind = {
    .field = job::Layer::kDense,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_dense()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.dense());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeDense(layer.dense(), inputs); },
};

}  // namespace parasol
