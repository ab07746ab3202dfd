#include "ml/metric/metrics.h"

#include <cmath>
#include <limits>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

// The visitor of a variant made of one function for each of its types.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

absl::StatusOr<Metrics> Metrics::Create(const job::Model& model,
                                        const LossSpec& loss) {
  Metrics metrics(loss);
  ASSIGN_OR_RETURN(std::vector<job::Metric> resolved,
                   ResolveMetrics(model, loss));
  for (job::Metric& metric : resolved) {
    Sums sums = SumsOf(metric, loss);
    metrics.entries_.push_back({std::move(metric), std::move(sums)});
  }
  return metrics;
}

Metrics::Sums Metrics::SumsOf(const job::Metric& metric, const LossSpec& loss) {
  switch (metric.kind_case()) {
    case job::Metric::kAuc:
    case job::Metric::kPrAuc:
      return Auc();
    case job::Metric::kPrecision:
      return BinaryCounts(metric.precision().threshold());
    case job::Metric::kRecall:
      return BinaryCounts(metric.recall().threshold());
    case job::Metric::kF1:
      return BinaryCounts(metric.f1().threshold());
    case job::Metric::kRSquared:
      return RSquared();
    default:
      break;
  }
  ExampleScore score = ExampleScoreOf(metric, loss.label);
  CHECK(score != nullptr) << NameOf(metric);
  return Mean{.score = std::move(score)};
}

void Metrics::Add(const Batch& batch, absl::Span<const float> outputs) {
  const absl::Span<const float> labels = batch.labels;
  CHECK_EQ(outputs.size(), static_cast<size_t>(batch.size * loss_.outputs));
  CHECK_EQ(labels.size(), static_cast<size_t>(batch.size * loss_.label.width));
  for (int64_t i = 0; i < batch.size; ++i) {
    AddExample(outputs.subspan(i * loss_.outputs, loss_.outputs),
               labels.subspan(i * loss_.label.width, loss_.label.width),
               batch.weights.empty() ? 1 : batch.weights[i]);
  }
}

void Metrics::AddExample(absl::Span<const float> outputs,
                         absl::Span<const float> labels, double weight) {
  for (Entry& entry : entries_) {
    std::visit(
        Overloaded{
            [&](Mean& mean) {
              mean.sum += weight * mean.score(outputs, labels);
            },
            [&](Auc& auc) { auc.Add(outputs[0], labels[0] > 0.5f, weight); },
            [&](BinaryCounts& counts) { counts.Add(outputs, labels, weight); },
            [&](RSquared& r) {
              r.Add(PredictionOf(outputs[0], loss_.label), labels[0], weight);
            }},
        entry.sums);
  }
  weight_sum_ += weight;
}

void Metrics::Merge(const Metrics& other) {
  CHECK_EQ(entries_.size(), other.entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Sums& added = other.entries_[i].sums;
    std::visit(
        Overloaded{[&](Mean& mean) { mean.sum += std::get<Mean>(added).sum; },
                   [&]<typename Other>(Other& sums) {
                     sums.Merge(std::get<Other>(added));
                   }},
        entries_[i].sums);
  }
  weight_sum_ += other.weight_sum_;
}

MetricResults Metrics::Results() const {
  MetricResults results;
  for (const Entry& entry : entries_) {
    results.emplace_back(NameOf(entry.metric), ResultOf(entry));
  }
  return results;
}

double Metrics::ResultOf(const Entry& entry) const {
  switch (entry.metric.kind_case()) {
    case job::Metric::kAuc:
      return std::get<Auc>(entry.sums).Value();
    case job::Metric::kPrAuc:
      return std::get<Auc>(entry.sums).AveragePrecision();
    case job::Metric::kPrecision:
      return std::get<BinaryCounts>(entry.sums).Precision();
    case job::Metric::kRecall:
      return std::get<BinaryCounts>(entry.sums).Recall();
    case job::Metric::kF1:
      return std::get<BinaryCounts>(entry.sums).F1();
    case job::Metric::kRSquared:
      return std::get<RSquared>(entry.sums).Value();
    default:
      break;
  }
  if (!(weight_sum_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double mean = std::get<Mean>(entry.sums).sum / weight_sum_;
  return entry.metric.has_root_mean_squared_error() ? std::sqrt(mean) : mean;
}

}  // namespace parasol
