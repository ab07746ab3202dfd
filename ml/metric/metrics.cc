#include "ml/metric/metrics.h"

#include <cmath>
#include <limits>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/metric/metric_spec.h"

namespace parasol {

absl::StatusOr<Metrics> Metrics::Create(const job::Model& model,
                                        const LossSpec& loss) {
  Metrics metrics(loss);
  ASSIGN_OR_RETURN(metrics.metrics_, ResolveMetrics(model, loss));
  for (const job::Metric::KindCase metric : metrics.metrics_) {
    if (metric == job::Metric::kAuc) {
      metrics.auc_.emplace_back();
    } else {
      metrics.means_.push_back({metric, ExampleScoreOf(metric, loss.label)});
    }
  }
  return metrics;
}

void Metrics::Add(const Batch& batch, absl::Span<const float> outputs) {
  const absl::Span<const float> labels = batch.labels;
  CHECK_EQ(outputs.size(), static_cast<size_t>(batch.size * loss_.outputs));
  CHECK_EQ(labels.size(), static_cast<size_t>(batch.size * loss_.label.width));
  for (int64_t i = 0; i < batch.size; ++i) {
    const double weight = batch.weights.empty() ? 1 : batch.weights[i];
    const auto example_outputs =
        outputs.subspan(i * loss_.outputs, loss_.outputs);
    const auto example_labels =
        labels.subspan(i * loss_.label.width, loss_.label.width);
    for (Mean& mean : means_) {
      mean.sum += weight * mean.score(example_outputs, example_labels);
    }
    for (Auc& auc : auc_) {
      auc.Add(example_outputs[0], example_labels[0] > 0.5f, weight);
    }
    weight_sum_ += weight;
  }
}

void Metrics::Merge(const Metrics& other) {
  CHECK(metrics_ == other.metrics_);
  for (size_t i = 0; i < means_.size(); ++i) {
    means_[i].sum += other.means_[i].sum;
  }
  for (size_t i = 0; i < auc_.size(); ++i) auc_[i].Merge(other.auc_[i]);
  weight_sum_ += other.weight_sum_;
}

MetricResults Metrics::Results() const {
  MetricResults results;
  for (const job::Metric::KindCase metric : metrics_) {
    results.emplace_back(NameOf(metric), ResultOf(metric));
  }
  return results;
}

double Metrics::ResultOf(job::Metric::KindCase metric) const {
  if (metric == job::Metric::kAuc) return auc_.front().Value();
  for (const Mean& mean : means_) {
    if (mean.metric != metric) continue;
    if (!(weight_sum_ > 0)) break;
    const double value = mean.sum / weight_sum_;
    return metric == job::Metric::kRootMeanSquaredError ? std::sqrt(value)
                                                        : value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace parasol
