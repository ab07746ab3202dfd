#include "ml/layer/pool.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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
  Bfloat16Use bfloat16_use() const override {
    return Bfloat16Use::kIfInputsAre;
  }

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

void FillDefaults(job::Pool& spec) {
  FillPadding(spec);
  if (spec.pool_size().empty()) spec.add_pool_size(2);
  if (spec.stride().empty()) *spec.mutable_stride() = spec.pool_size();
}

absl::StatusOr<std::unique_ptr<const Layer>> MakePool(
    Kind kind, const job::Pool& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  job::Pool filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitImageWindow(image, filled.pool_size(), filled.stride(),
                                  filled.padding()));
  return std::make_unique<PoolLayer>(kind, window,
                                     window.OutputShape(window.channels));
}

absl::Status CheckRanges(const std::string& path, const job::Pool& spec) {
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".pool_size"), spec.pool_size()));
  RETURN_IF_ERROR(RequirePixels(absl::StrCat(path, ".stride"), spec.stride()));
  return RequireImagePadding(path, spec.padding());
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

constinit const LayerKind kMaxPoolKind = {
    .field = job::Layer::kMaxPool,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_max_pool()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.max_pool());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeMaxPool(layer.max_pool(), inputs); },
};

constinit const LayerKind kAveragePoolKind = {
    .field = job::Layer::kAveragePool,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_average_pool()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.average_pool());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) { return MakeAveragePool(layer.average_pool(), inputs); },
};

constinit const LayerKind kGlobalAveragePoolKind = {
    .field = job::Layer::kGlobalAveragePool,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeGlobalAveragePool(inputs); },
};

}  // namespace parasol
