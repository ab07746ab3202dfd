#include "ml/layer/pool.h"

#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "ml/kernel/image/pooling.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/image_window.h"

namespace parasol {
namespace {

using Kind = PoolingShape::Kind;

class PoolPass : public LayerPass {
 public:
  explicit PoolPass(std::unique_ptr<Pooling> pooling)
      : pooling_(std::move(pooling)) {}

  absl::Status RunForward(const Forward& pass) override {
    return pooling_->Forward(pass.x[0], pass.y);
  }
  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return pooling_->InputGradient(pass.x[0], pass.y, pass.dy, pass.dx[0]);
  }

 private:
  const std::unique_ptr<Pooling> pooling_;
};

class PoolLayer : public Layer {
 public:
  PoolLayer(Kind kind, const ImageWindow& window, const Shape& output_shape)
      : kind_(kind), window_(window) {
    output_shape_ = output_shape;
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<Pooling> pooling,
                     Pooling::Create(device, {.kind = kind_,
                                              .examples = examples,
                                              .height = window_.height,
                                              .width = window_.width,
                                              .channels = window_.channels}));
    return std::make_unique<PoolPass>(std::move(pooling));
  }

 private:
  const Kind kind_;
  const ImageWindow window_;
};

absl::StatusOr<std::unique_ptr<const Layer>> MakePool(
    Kind kind, const job::Pool& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  ASSIGN_OR_RETURN(
      const ImageWindow window,
      FitImageWindow(image, spec.pool_size(), spec.stride(),
                     /*default_stride=*/spec.pool_size(), spec.padding()));
  return std::make_unique<PoolLayer>(kind, window,
                                     window.OutputShape(window.channels));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeMaxPool(
    const job::Pool& spec, absl::Span<const LayerInput> inputs) {
  return MakePool(Kind::kMax, spec, inputs);
}

absl::StatusOr<std::unique_ptr<const Layer>> MakeAveragePool(
    const job::Pool& spec, absl::Span<const LayerInput> inputs) {
  return MakePool(Kind::kAverage, spec, inputs);
}

// One window over the whole image.
absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalAveragePool(
    absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  RETURN_IF_ERROR(CheckImage(image));
  const ImageWindow window = {
      .height = FitWindow(image[0], image[0], 1, WindowPadding::kValid),
      .width = FitWindow(image[1], image[1], 1, WindowPadding::kValid),
      .channels = image[2]};
  return std::make_unique<PoolLayer>(Kind::kAverage, window, Shape{image[2]});
}

}  // namespace parasol
