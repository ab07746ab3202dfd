// A loss of one's own, for quantile regression (Koenker and Bassett 1978). An
// output is the prediction of the label's q-quantile, and
//
//   loss = q · (label - output)          if label ≥ output
//          (1 - q) · (output - label)    otherwise
//
// meaned over the outputs, is least if a share q of the labels is below it.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/custom/custom_parameters.h"
#include "ml/loss/custom_loss.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

class Quantile : public ExampleLoss {
 public:
  Quantile(double quantile, int64_t outputs)
      : quantile_(quantile), outputs_(outputs) {}

  LabelForm label() const override {
    return {.kind = LabelForm::Kind::kNumbers, .width = outputs_};
  }

  double Of(absl::Span<const float> outputs, absl::Span<const float> labels,
            absl::Span<float> gradient) const override {
    const auto number = static_cast<double>(outputs.size());
    double loss = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const double error = double{labels[i]} - double{outputs[i]};
      // The derivative of the loss by the error.
      const double slope = error >= 0 ? quantile_ : quantile_ - 1;
      loss += slope * error / number;
      if (!gradient.empty()) {
        gradient[i] = static_cast<float>(-slope / number);
      }
    }
    return loss;
  }

 private:
  const double quantile_;
  const int64_t outputs_;
};

absl::StatusOr<std::unique_ptr<const CustomLoss>> MakeQuantile(
    const job::Custom& spec, int64_t outputs) {
  CustomParameters parameters(spec.parameter());
  const double quantile = parameters.Number("quantile", .5, 0, 1);
  RETURN_IF_ERROR(parameters.CheckAllRead());
  return std::make_unique<Quantile>(quantile, outputs);
}

const CustomLossRegistration kRegistration("quantile", MakeQuantile);

}  // namespace
}  // namespace parasol
