#ifndef PARASOL_ML_METRIC_CUSTOM_METRIC_H_
#define PARASOL_ML_METRIC_CUSTOM_METRIC_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

// Metrics that users write (docs/examples/custom_model). A metric's name among
// the results is its type. The chief, which knows the name, needs none of the
// code: only the programs that evaluate, worker, evaluator and the tool
// `parasol`, are linked with it.
namespace parasol {

// The sums of one metric of a user's own over the examples that were added.
// Not thread-safe. Memory must have a bound that does not depend on the number
// of examples.
class CustomMetric {
 public:
  virtual ~CustomMetric() = default;

  // Returns a copy with the same sums.
  virtual std::unique_ptr<CustomMetric> Clone() const = 0;

  // Adds one example: the outputs that the metric is of, the example's label,
  // in the form that the loss of these outputs asks for, and its weight, 0 or
  // more.
  virtual void Add(absl::Span<const float> outputs,
                   absl::Span<const float> labels, double weight) = 0;

  // Adds all examples of `other`, a metric of the same type and parameters.
  virtual void Merge(const CustomMetric& other) = 0;

  // Returns the metric of all examples that were added, in whatever order. NaN
  // stands for undefined.
  virtual double Value() const = 0;
};

// A function that makes a metric without examples, for outputs that have this
// loss.
//   InvalidArgument  the parameters or the loss do not suit it: says why.
using CustomMetricFactory =
    std::function<absl::StatusOr<std::unique_ptr<CustomMetric>>(
        const job::Custom& spec, const LossSpec& loss)>;

// Registers a metric in this program as `type`, 1 to 100 letters, digits and
// '_', at namespace scope of its own file:
//
//   const CustomMetricRegistration kRegistration("coverage", MakeCoverage);
//
// Two metrics of one type are a bug. Only for use before main().
class CustomMetricRegistration {
 public:
  CustomMetricRegistration(absl::string_view type, CustomMetricFactory factory);
};

// Returns a metric without examples.
//   InvalidArgument     the code refuses the parameters or the loss.
//   FailedPrecondition  this program does not have the code: names the types
//                       that it has.
absl::StatusOr<std::unique_ptr<CustomMetric>> MakeCustomMetric(
    const job::Custom& spec, const LossSpec& loss);

// Checks the type's name, and the rest as far as this program has the code.
//   InvalidArgument  the type is no name, or another result's, or as for
//                    MakeCustomMetric().
absl::Status CheckCustomMetric(const job::Custom& spec, const LossSpec& loss);

// A CustomMetric as a value: a copy has sums of its own.
class CustomSums {
 public:
  explicit CustomSums(std::unique_ptr<CustomMetric> metric)
      : metric_(std::move(metric)) {}
  CustomSums(const CustomSums& other) : metric_(other.metric_->Clone()) {}
  CustomSums& operator=(const CustomSums& other) {
    metric_ = other.metric_->Clone();
    return *this;
  }
  CustomSums(CustomSums&&) = default;
  CustomSums& operator=(CustomSums&&) = default;

  void Add(absl::Span<const float> outputs, absl::Span<const float> labels,
           double weight) {
    metric_->Add(outputs, labels, weight);
  }
  void Merge(const CustomSums& other) { metric_->Merge(*other.metric_); }
  double Value() const { return metric_->Value(); }

 private:
  std::unique_ptr<CustomMetric> metric_;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_CUSTOM_METRIC_H_
