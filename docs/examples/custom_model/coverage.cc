// A metric of one's own, "coverage": the share of the labels, by the weights of
// their examples, that are not above the output. A model of the q-quantile has
// coverage q.

#include <cstddef>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/custom/custom_parameters.h"
#include "ml/loss/loss_spec.h"
#include "ml/metric/custom_metric.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

class Coverage : public CustomMetric {
 public:
  std::unique_ptr<CustomMetric> Clone() const override {
    return std::make_unique<Coverage>(*this);
  }

  void Add(absl::Span<const float> outputs, absl::Span<const float> labels,
           double weight) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (labels[i] <= outputs[i]) covered_ += weight;
      all_ += weight;
    }
  }

  void Merge(const CustomMetric& other) override {
    const auto& added = static_cast<const Coverage&>(other);
    covered_ += added.covered_;
    all_ += added.all_;
  }

  double Value() const override {
    return all_ > 0 ? covered_ / all_
                    : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  // Sums of weights.
  double covered_ = 0;
  double all_ = 0;
};

absl::StatusOr<std::unique_ptr<CustomMetric>> MakeCoverage(
    const job::Custom& spec, const LossSpec& loss) {
  RETURN_IF_ERROR(CustomParameters(spec.parameter()).CheckAllRead());
  if (loss.label.width != loss.outputs) {
    return absl::InvalidArgumentError(
        "coverage needs a loss with a label for each output");
  }
  return std::make_unique<Coverage>();
}

const CustomMetricRegistration kRegistration("coverage", MakeCoverage);

}  // namespace
}  // namespace parasol
