#include "ml/layer/dropout.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/kernel/dropout.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class DropoutPass final : public LayerPass {
 public:
  DropoutPass(Device& device, int64_t size, double rate)
      : device_(device), size_(size), rate_(rate) {}

  absl::Status RunForward(const Forward& pass) override {
    if (pass.training) {
      return Dropout(device_, rate_, pass.stored_seed, pass.x[0], size_,
                     pass.y);
    }
    return device_.Copy(Device::Stream::kCompute, pass.x[0], size_, pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    if (!pass.training) {
      return device_.Copy(Device::Stream::kCompute, pass.dy, size_, pass.dx[0]);
    }
    return Dropout(device_, rate_, pass.stored_seed, pass.dy, size_,
                   pass.dx[0]);
  }

 private:
  Device& device_;
  const int64_t size_;
  const double rate_;
};

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(Shape shape, double rate) : rate_(rate) {
    output_shape_ = std::move(shape);
  }

  bool IsView() const override { return rate_ == 0; }
  bool KeepsOutputGradient() const override { return true; }
  bool ReadsStoredSeed() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<DropoutPass>(
        device, examples * ElementsOf(output_shape()), rate_);
  }

 private:
  const double rate_;
};

absl::Status CheckRanges(const std::string& path, const job::Dropout& spec) {
  const std::string rate = absl::StrCat(path, ".rate");
  if (!spec.has_rate()) return Missing(rate);
  if (spec.rate() >= 0 && spec.rate() < 1) return absl::OkStatus();
  return Fault(rate,
               absl::StrCat(spec.rate(), " is not at least 0 and below 1"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeDropout(
    const job::Dropout& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  if (!(spec.rate() >= 0 && spec.rate() < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dropout.rate is ", spec.rate(), ", not at least 0 and below 1"));
  }
  return std::make_unique<DropoutLayer>(std::move(shape), spec.rate());
}

constinit const LayerKind kDropoutKind = {
    .field = job::Layer::kDropout,
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.dropout());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeDropout(layer.dropout(), inputs); },
};

}  // namespace parasol
