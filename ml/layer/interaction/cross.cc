#include "ml/layer/interaction/cross.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/add.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/multiply.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/affine_fields.h"

namespace parasol {
namespace {

// Largest width of an input, so that a kernel has at most 2^30 elements.
constexpr int64_t kMaxWidth = int64_t{1} << 15;

struct CrossShape {
  int64_t examples = 0;
  int64_t width = 0;
  int64_t rank = 0;  // 0: W is one matrix
  bool has_bias = false;

  int64_t size() const { return examples * width; }
  // Places of the variables: u_kernel first, if there is one.
  int64_t kernel() const { return rank > 0 ? 1 : 0; }
  int64_t bias() const { return kernel() + 1; }
  int64_t kernel_rows() const { return rank > 0 ? rank : width; }
};

// Memory of a pass.
struct CrossArrays {
  Array<float> projected;           // x · u_kernel [examples, rank]
  Array<float> inner;               // x · W + bias [examples, width]
  Array<float> inner_gradient;      // [examples, width]
  Array<float> projected_gradient;  // [examples, rank]
};

class CrossPass final : public LayerPass {
 public:
  CrossPass(Device& device, const CrossShape& shape, CrossArrays arrays)
      : device_(device), shape_(shape), arrays_(std::move(arrays)) {}

  absl::Status RunForward(const Forward& pass) override {
    if (shape_.rank > 0) {
      RETURN_IF_ERROR(Affine(device_, Input(pass.x), UKernel(pass.variables),
                             /*bias=*/nullptr, Epilogue::kNone, Projected()));
    }
    RETURN_IF_ERROR(
        Affine(device_, KernelInput(pass.x), Kernel(pass.variables),
               shape_.has_bias ? pass.variables[shape_.bias()] : nullptr,
               Epilogue::kNone, Wide(arrays_.inner.data())));
    return Multiply(device_, pass.x.front(), arrays_.inner.data(),
                    pass.x.back(), shape_.size(), pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    const MutableMatrixView dinner = Wide(arrays_.inner_gradient.data());
    RETURN_IF_ERROR(Multiply(device_, pass.dy, pass.x.front(),
                             /*addend=*/nullptr, shape_.size(), dinner.data));
    RETURN_IF_ERROR(AffineVariableGradients(
        device_, KernelInput(pass.x), dinner,
        {pass.gradients[shape_.kernel()], shape_.kernel_rows(), shape_.width},
        shape_.has_bias ? pass.gradients[shape_.bias()] : nullptr));
    if (shape_.rank == 0) return absl::OkStatus();
    RETURN_IF_ERROR(AffineInputGradient(device_, dinner, Kernel(pass.variables),
                                        ProjectedGradient()));
    return AffineVariableGradients(
        device_, Input(pass.x), ProjectedGradient(),
        {pass.gradients[0], shape_.width, shape_.rank}, /*dbias=*/nullptr);
  }

  // By x: dy + d(inner) · Wᵀ; by x0: dy ⊙ inner.
  absl::Status RunInputGradients(const Backward& pass) override {
    float* const dx = pass.dx.back();
    if (dx != nullptr) {
      RETURN_IF_ERROR(ThroughProduct(pass, Wide(dx)));
      RETURN_IF_ERROR(
          Add(device_, dx, pass.dy, shape_.size(), AddEpilogue::kNone, dx));
    }
    float* const dx0 = pass.dx.front();
    if (dx0 == nullptr) return absl::OkStatus();
    const float* const other = pass.dx.size() == 1 ? dx : nullptr;
    return Multiply(device_, pass.dy, arrays_.inner.data(), other,
                    shape_.size(), dx0);
  }

 private:
  absl::Status ThroughProduct(const Backward& pass, MutableMatrixView dx) {
    if (shape_.rank > 0) {
      return AffineInputGradient(device_, ProjectedGradient(),
                                 UKernel(pass.variables), dx);
    }
    return AffineInputGradient(device_, Wide(arrays_.inner_gradient.data()),
                               Kernel(pass.variables), dx);
  }

  MatrixView Input(absl::Span<const ConstElements> x) const {
    return {x.back(), shape_.examples, shape_.width};
  }
  // What kernel is multiplied with.
  MatrixView KernelInput(absl::Span<const ConstElements> x) {
    return shape_.rank > 0 ? MatrixView(Projected()) : Input(x);
  }
  MatrixView UKernel(absl::Span<const float* const> variables) const {
    return {variables[0], shape_.width, shape_.rank};
  }
  MatrixView Kernel(absl::Span<const float* const> variables) const {
    return {variables[shape_.kernel()], shape_.kernel_rows(), shape_.width};
  }
  MutableMatrixView Wide(float* data) const {
    return {data, shape_.examples, shape_.width};
  }
  MutableMatrixView Projected() {
    return {arrays_.projected.data(), shape_.examples, shape_.rank};
  }
  MutableMatrixView ProjectedGradient() {
    return {arrays_.projected_gradient.data(), shape_.examples, shape_.rank};
  }

  Device& device_;
  const CrossShape shape_;
  CrossArrays arrays_;
};

class CrossLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  CrossLayer(const job::Cross& spec, int64_t width) {
    shape_ = {.width = width,
              .rank = spec.projection_dim(),
              .has_bias = spec.use_bias()};
    output_shape_ = {width};
    if (shape_.rank > 0) {
      AddVariable("u_kernel", {width, shape_.rank}, spec.kernel_initializer(),
                  spec.kernel_l2());
    }
    AddVariable("kernel", {shape_.kernel_rows(), width},
                spec.kernel_initializer(), spec.kernel_l2());
    if (shape_.has_bias) {
      AddVariable("bias", {width}, spec.bias_initializer(), spec.bias_l2());
    }
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    CrossShape shape = shape_;
    shape.examples = examples;
    CrossArrays arrays;
    ASSIGN_OR_RETURN(arrays.inner, device.NewArray<float>(shape.size()));
    ASSIGN_OR_RETURN(arrays.inner_gradient,
                     device.NewArray<float>(shape.size()));
    if (shape.rank > 0) {
      const int64_t projected = examples * shape.rank;
      ASSIGN_OR_RETURN(arrays.projected, device.NewArray<float>(projected));
      ASSIGN_OR_RETURN(arrays.projected_gradient,
                       device.NewArray<float>(projected));
    }
    return std::make_unique<CrossPass>(device, shape, std::move(arrays));
  }

 private:
  void AddVariable(std::string name, Shape shape,
                   const job::Initializer& initializer, double l2) {
    variables_.push_back({.name = std::move(name),
                          .shape = std::move(shape),
                          .initializer = initializer});
    variable_l2_.push_back(l2);
  }

  CrossShape shape_;
};

void FillDefaults(job::Cross& spec) {
  PARASOL_SET_DEFAULT(spec, projection_dim, 0);
  FillProduct(spec);
}

absl::Status CheckRanges(const std::string& path, const job::Cross& spec) {
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".projection_dim"),
                                 spec.projection_dim(), 0, kMaxWidth));
  return CheckProduct(path, spec);
}

absl::Status CheckInputs(absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross takes x0 and x, not ", inputs.size(), " inputs"));
  }
  for (const LayerInput& input : inputs) {
    if (input.shape.size() == 1 && input.shape == inputs[0].shape &&
        input.shape[0] <= kMaxWidth) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "cross needs flat inputs of one width, at most ", kMaxWidth, ", not ",
        ShapeText(inputs[0].shape), " and ", ShapeText(inputs.back().shape)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeCross(
    const job::Cross& spec, absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckInputs(inputs));
  const int64_t width = inputs[0].shape[0];
  if (spec.projection_dim() < 0 || spec.projection_dim() > width) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross.projection_dim is ", spec.projection_dim(),
                     ", not in 0 to the input's width, ", width));
  }
  job::Cross filled = spec;
  FillDefaults(filled);
  return std::make_unique<CrossLayer>(filled, width);
}

constinit const LayerKind kCrossKind = {
    .field = job::Layer::kCross,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_cross()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.cross());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeCross(layer.cross(), inputs); },
};

}  // namespace parasol
