#include "ml/loss/custom_loss.h"

#include <algorithm>
#include <utility>

#include "base/field_checks.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/custom/code_registry.h"
#include "ml/kernel/zero.h"

namespace parasol {
namespace {

CodeRegistry<CustomLossFactory>& Registry() {
  static auto* const registry = new CodeRegistry<CustomLossFactory>(
      "loss", "worker, evaluator and parasol");
  return *registry;
}

}  // namespace

absl::Status ExampleLoss::Compute(Device& /*device*/, const LossBatch& batch,
                                  const LossResult& out) const {
  const int64_t outputs = batch.outputs.columns;
  const int64_t width =
      label().kind == LabelForm::Kind::kNone ? 0 : label().width;
  const auto examples = static_cast<double>(batch.outputs.rows);
  for (int64_t i = 0; i < batch.outputs.rows; ++i) {
    const double weight = batch.weights == nullptr ? 1 : batch.weights[i];
    const absl::Span<float> gradient =
        out.gradient == nullptr
            ? absl::Span<float>()
            : absl::MakeSpan(out.gradient + i * outputs, outputs);
    // An example that does not count may have a label that means nothing, for
    // which the loss may be no number.
    if (weight == 0) {
      out.losses[i] = 0;
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      continue;
    }
    const double loss =
        Of(absl::MakeConstSpan(batch.outputs.data + i * outputs, outputs),
           absl::MakeConstSpan(batch.labels + i * width, width), gradient);
    out.losses[i] = static_cast<float>(weight * loss);
    for (float& element : gradient) {
      element = static_cast<float>(weight * double{element} / examples);
    }
  }
  return absl::OkStatus();
}

CustomLossRegistration::CustomLossRegistration(absl::string_view type,
                                               CustomLossFactory factory) {
  Registry().Add(type, std::move(factory));
}

absl::StatusOr<std::shared_ptr<const CustomLoss>> MakeCustomLoss(
    const std::string& path, const job::Custom& spec, int64_t outputs) {
  const CustomLossFactory* const factory = Registry().Find(spec.type());
  if (factory == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<const CustomLoss>> loss =
      (*factory)(spec, outputs);
  if (!loss.ok()) {
    return Fault(path, loss.status().message());
  }
  CHECK(*loss != nullptr) << "custom loss " << spec.type();
  const LabelForm label = (*loss)->label();
  CHECK(label.kind == LabelForm::Kind::kNone || label.width >= 1)
      << "label of the custom loss " << spec.type();
  return std::shared_ptr<const CustomLoss>(*std::move(loss));
}

absl::Status LacksCustomLoss(absl::string_view type) {
  return absl::FailedPreconditionError(Registry().Lacks(type));
}

constinit const LossKind kCustomLossKind = {
    .field = job::Loss::kCustom,
    .check = [](const std::string& path,
                const job::Loss& loss) -> absl::Status {
      if (loss.custom().type().empty()) return Missing(path + ".type");
      return absl::OkStatus();
    },
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers, .width = outputs};
        },
    // A prediction needs outputs alone, and reads no losses.
    .compute = [](Device& device, const job::Loss& loss, const LossBatch& batch,
                  const LossResult& out) -> absl::Status {
      if (out.gradient != nullptr) return LacksCustomLoss(loss.custom().type());
      return Zero(device, out.losses, batch.outputs.rows);
    },
};

}  // namespace parasol
