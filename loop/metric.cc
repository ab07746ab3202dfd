#include "loop/metric.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/operations.h"

namespace parasol::loop {

absl::StatusOr<MeanMetric> MeanMetric::Create(absl::string_view name) {
  const Variable::Options options = {
      .trainable = false,
      .aggregation = Aggregation::kSum,
      .synchronization = Synchronization::kOnRead};
  ASSIGN_OR_RETURN(
      Variable total,
      Variable::Create(absl::StrCat(name, "/total"), 0.f, options));
  ASSIGN_OR_RETURN(
      Variable count,
      Variable::Create(absl::StrCat(name, "/count"), 0.f, options));
  return MeanMetric(std::move(total), std::move(count));
}

absl::Status MeanMetric::Update(const Tensor& values) const {
  RETURN_IF_ERROR(total_.AssignAdd(ReduceSum(values)));
  return count_.AssignAdd(static_cast<float>(values.size()));
}

absl::Status MeanMetric::Update(const Tensor& values,
                                const Tensor& weights) const {
  if (values.status().ok() && weights.status().ok() &&
      values.shape() != weights.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric ", total_.name(), " has values of the shape ",
                     values.shape().ToString(), " and weights of ",
                     weights.shape().ToString()));
  }
  RETURN_IF_ERROR(total_.AssignAdd(ReduceSum(values * weights)));
  return count_.AssignAdd(ReduceSum(weights));
}

Tensor MeanMetric::Result() const {
  const Tensor total = total_.Read();
  const Tensor count = count_.Read();
  if (!total.status().ok()) return total;
  if (!count.status().ok()) return count;
  return count.scalar() == 0 ? Tensor(0.f) : total / count;
}

absl::Status MeanMetric::Reset() const {
  RETURN_IF_ERROR(total_.Assign(0.f));
  return count_.Assign(0.f);
}

absl::StatusOr<AccuracyMetric> AccuracyMetric::Create(absl::string_view name) {
  ASSIGN_OR_RETURN(MeanMetric mean, MeanMetric::Create(name));
  return AccuracyMetric(std::move(mean));
}

absl::Status AccuracyMetric::Update(const Tensor& labels,
                                    const Tensor& outputs) const {
  RETURN_IF_ERROR(labels.status());
  RETURN_IF_ERROR(outputs.status());
  const int64_t examples = labels.size();
  if (outputs.rank() == 0 || outputs.shape()[0] != examples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "accuracy of labels of the shape ", labels.shape().ToString(),
        " and outputs of ", outputs.shape().ToString()));
  }
  const int64_t classes = examples == 0 ? 1 : outputs.size() / examples;
  const Tensor wanted = Cast(Reshape(labels, {examples}), DType::kFloat32);
  const Tensor chosen =
      classes > 1 ? Cast(ArgMax(Reshape(outputs, {examples, classes}), 1),
                         DType::kFloat32)
                  : Greater(Reshape(outputs, {examples}), 0.f);
  return mean_.Update(Equal(wanted, chosen));
}

}  // namespace parasol::loop
