#include "ml/layer/batch_normalization.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/kernel/normalization/batch_normalization.h"
#include "ml/kernel/zero.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/normalization_epsilon.h"

namespace parasol {
namespace {

// Positions of the variables in Layer::variables(); kNone if there is none.
struct Positions {
  static constexpr size_t kNone = -1;

  explicit Positions(const job::BatchNormalization& spec) {
    size_t next = 0;
    if (spec.scale()) gamma = next++;
    if (spec.center()) beta = next++;
    mean = next++;
    variance = next++;
  }

  // Returns the array of a variable's values or gradients, or null.
  template <typename T>
  static T* At(absl::Span<T* const> arrays, size_t position) {
    return position == kNone ? nullptr : arrays[position];
  }

  size_t gamma = kNone;
  size_t beta = kNone;
  size_t mean = 0;
  size_t variance = 0;
};

// The pass of a layer that is trained. A second input is the term of a sum.
class BatchNormalizationPass : public LayerPass {
 public:
  BatchNormalizationPass(Device& device, const Positions& positions,
                         double momentum, bool has_term, int64_t size,
                         int64_t channels,
                         std::unique_ptr<BatchNormalization> kernel)
      : device_(device),
        positions_(positions),
        momentum_(momentum),
        has_term_(has_term),
        size_(size),
        channels_(channels),
        kernel_(std::move(kernel)) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* const gamma = Positions::At(pass.variables, positions_.gamma);
    const float* const beta = Positions::At(pass.variables, positions_.beta);
    const ConstElements term = has_term_ ? pass.x[1] : nullptr;
    if (pass.training) {
      return kernel_->ForwardTraining(pass.x[0], gamma, beta, term, pass.y);
    }
    return kernel_->ForwardEvaluation(pass.x[0], gamma, beta,
                                      Moving(pass.variables), term, pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    const BatchNormalization::Gradients gradients = {
        .dgamma = Positions::At(pass.gradients, positions_.gamma),
        .dbeta = Positions::At(pass.gradients, positions_.beta),
        .dx = pass.dx[0],
        .of_evaluation = !pass.training};
    BatchNormalization::MomentsUpdate update =
        UpdateOf(pass.variables, pass.gradients);
    if (!pass.training) {
      RETURN_IF_ERROR(KeepMoving(update.change));
      update.change = {};
    }
    return has_term_ ? kernel_->BackwardOfSum(pass.x[0], pass.y, pass.dy,
                                              gradients, update)
                     : kernel_->Backward(pass.x[0], pass.dy, gradients, update);
  }

  // All but the gradient of a term, for who does not ask PassesGradientOn(), is
  // written by the kernel that writes the variables' gradients.
  absl::Status RunInputGradients(const Backward& pass) override {
    if (!has_term_ || pass.dx[1] == nullptr) return absl::OkStatus();
    return device_.Copy(Device::Stream::kCompute, pass.dy, size_, pass.dx[1]);
  }

  absl::Status RunUntrainedChanges(absl::Span<const float* const> variables,
                                   absl::Span<float* const> changes) override {
    return kernel_->ChangeMoments(UpdateOf(variables, changes));
  }

 private:
  BatchNormalization::MomentsUpdate UpdateOf(
      absl::Span<const float* const> variables,
      absl::Span<float* const> changes) const {
    return {.moving = Moving(variables),
            .momentum = momentum_,
            .change = {changes[positions_.mean], changes[positions_.variance]}};
  }

  // Evaluation changes no moments.
  absl::Status KeepMoving(const BatchNormalization::MutableMoments& change) {
    if (change.mean == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(Zero(device_, change.mean, channels_));
    return Zero(device_, change.variance, channels_);
  }

  BatchNormalization::Moments Moving(
      absl::Span<const float* const> variables) const {
    return {variables[positions_.mean], variables[positions_.variance]};
  }

  Device& device_;
  const Positions positions_;
  const double momentum_;
  const bool has_term_;
  const int64_t size_;
  const int64_t channels_;
  const std::unique_ptr<BatchNormalization> kernel_;
};

// The pass of a layer that is not trained: y = x · scale + offset for constants
// of each channel.
class FrozenBatchNormalizationPass : public LayerPass {
 public:
  // `zeros` has one for each channel.
  FrozenBatchNormalizationPass(const Positions& positions, Array<float> zeros,
                               std::unique_ptr<BatchNormalization> kernel)
      : positions_(positions),
        zeros_(std::move(zeros)),
        kernel_(std::move(kernel)) {}

  absl::Status RunForward(const Forward& pass) override {
    return kernel_->ForwardEvaluation(
        pass.x[0], Positions::At(pass.variables, positions_.gamma),
        Positions::At(pass.variables, positions_.beta),
        {pass.variables[positions_.mean], pass.variables[positions_.variance]},
        pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  // dx = dy · scale: what the layer makes of dy where mean and beta are 0.
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return kernel_->ForwardEvaluation(
        pass.dy, Positions::At(pass.variables, positions_.gamma),
        /*beta=*/nullptr, {zeros_.data(), pass.variables[positions_.variance]},
        pass.dx[0]);
  }

 private:
  const Positions positions_;
  const Array<float> zeros_;
  const std::unique_ptr<BatchNormalization> kernel_;
};

class BatchNormalizationLayer : public Layer {
 public:
  struct Options {
    Epilogue epilogue = Epilogue::kNone;
    bool has_term = false;
  };

  // `spec` has its defaults filled in.
  BatchNormalizationLayer(const job::BatchNormalization& spec,
                          const Shape& shape, bool trainable,
                          const Options& options)
      : spec_(spec),
        positions_(spec),
        trainable_(trainable),
        options_(options) {
    output_shape_ = shape;
    if (positions_.gamma != Positions::kNone) {
      AddVariable("gamma", spec.gamma_initializer(), /*trained=*/true);
    }
    job::Initializer zeros;
    zeros.mutable_zeros();
    job::Initializer ones;
    ones.mutable_constant()->set_value(1);
    if (positions_.beta != Positions::kNone) {
      AddVariable("beta", zeros, /*trained=*/true);
    }
    AddVariable("moving_mean", zeros, /*trained=*/false);
    AddVariable("moving_variance", ones, /*trained=*/false);
  }

  // The gradient of one that is not trained goes through no epilogue.
  std::unique_ptr<const Layer> WithRelu() const override {
    if (!trainable_) return nullptr;
    Options options = options_;
    options.epilogue = Epilogue::kRelu;
    return std::make_unique<BatchNormalizationLayer>(spec_, output_shape(),
                                                     trainable_, options);
  }
  std::unique_ptr<const Layer> WithTerm() const override {
    if (!trainable_ || options_.has_term) return nullptr;
    if (options_.epilogue != Epilogue::kNone) return nullptr;
    return std::make_unique<BatchNormalizationLayer>(
        spec_, output_shape(), trainable_, Options{.has_term = true});
  }

  bool KeepsOutputGradient() const override {
    return !options_.has_term || options_.epilogue == Epilogue::kNone;
  }
  bool PassesGradientOn(size_t input) const override { return input == 1; }
  bool SkipsGradients() const override { return true; }
  bool IsRecordable() const override { return true; }
  Bfloat16Use bfloat16_use() const override {
    return Bfloat16Use::kIfInputsAre;
  }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const int64_t channels = output_shape().back();
    ASSIGN_OR_RETURN(
        std::unique_ptr<BatchNormalization> kernel,
        BatchNormalization::Create(
            device,
            {.rows = examples * ElementsOf(output_shape()) / channels,
             .channels = channels},
            {.epsilon = spec_.epsilon(),
             .epilogue = options_.epilogue,
             .has_term = options_.has_term}));
    if (!trainable_) {
      ASSIGN_OR_RETURN(Array<float> zeros, device.NewArray<float>(channels));
      RETURN_IF_ERROR(Zero(device, zeros.data(), channels));
      return std::make_unique<FrozenBatchNormalizationPass>(
          positions_, std::move(zeros), std::move(kernel));
    }
    return std::make_unique<BatchNormalizationPass>(
        device, positions_, spec_.momentum(), options_.has_term,
        examples * ElementsOf(output_shape()), channels, std::move(kernel));
  }

 private:
  void AddVariable(const std::string& name, const job::Initializer& initializer,
                   bool trained) {
    variables_.push_back({.name = name,
                          .shape = {output_shape_.back()},
                          .initializer = initializer,
                          .trained = trained && trainable_});
    variable_l2_.push_back(0);
  }

  const job::BatchNormalization spec_;
  const Positions positions_;
  const bool trainable_;
  const Options options_;
};

void FillDefaults(job::BatchNormalization& spec) {
  PARASOL_SET_DEFAULT(spec, momentum, 0.99);
  PARASOL_SET_DEFAULT(spec, epsilon, 0.001);
  PARASOL_SET_DEFAULT(spec, center, true);
  PARASOL_SET_DEFAULT(spec, scale, true);
  job::Initializer& gamma = *spec.mutable_gamma_initializer();
  if (gamma.kind_case() == job::Initializer::KIND_NOT_SET) {
    gamma.mutable_constant()->set_value(1);
  }
  FillInitializer(gamma);
}

absl::Status CheckRanges(const std::string& path,
                         const job::BatchNormalization& spec) {
  if (!(spec.momentum() >= 0 && spec.momentum() <= 1)) {
    return Fault(absl::StrCat(path, ".momentum"),
                 absl::StrCat(spec.momentum(), " is not in 0 to 1"));
  }
  RETURN_IF_ERROR(
      RequireEpsilon(absl::StrCat(path, ".epsilon"), spec.epsilon()));
  RETURN_IF_ERROR(CheckBiasInitializer(spec.gamma_initializer()))
      << path << ".gamma_initializer";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeBatchNormalization(
    const job::BatchNormalization& spec, absl::Span<const LayerInput> inputs,
    bool trainable) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  if (shape.empty()) {
    return absl::InvalidArgumentError("needs an axis of channels");
  }
  job::BatchNormalization filled = spec;
  FillDefaults(filled);
  // Written so that NaN is rejected too.
  if (!(filled.momentum() >= 0 && filled.momentum() <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("momentum is ", filled.momentum(), ", not in [0, 1]"));
  }
  RETURN_IF_ERROR(CheckEpsilon(filled.epsilon()));
  return std::make_unique<BatchNormalizationLayer>(
      filled, shape, trainable, BatchNormalizationLayer::Options{});
}

constinit const LayerKind kBatchNormalizationKind = {
    .field = job::Layer::kBatchNormalization,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_batch_normalization());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.batch_normalization());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeBatchNormalization(layer.batch_normalization(), inputs,
                                        layer.trainable());
        },
};

}  // namespace parasol
