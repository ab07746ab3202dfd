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
                                        absl::Span<const OutputSpec> outputs) {
  Metrics metrics;
  ASSIGN_OR_RETURN(std::vector<std::vector<job::Metric>> resolved,
                   ResolveAllMetrics(model, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Part& part = metrics.parts_.emplace_back();
    part.output = outputs[i];
    metrics.width_ += outputs[i].loss.outputs;
    for (job::Metric& metric : resolved[i]) {
      Sums sums = SumsOf(metric, outputs[i].loss);
      part.entries.push_back({std::move(metric), std::move(sums)});
    }
  }
  return metrics;
}

Metrics::Sums Metrics::SumsOf(const job::Metric& metric, const LossSpec& loss) {
  const auto form = loss.has_probabilities()
                        ? BinaryCounts::Outputs::kProbabilities
                        : BinaryCounts::Outputs::kLogits;
  switch (metric.kind_case()) {
    case job::Metric::kAuc:
    case job::Metric::kPrAuc:
      return Auc();
    case job::Metric::kPrecision:
      return BinaryCounts(metric.precision().threshold(), form);
    case job::Metric::kRecall:
      return BinaryCounts(metric.recall().threshold(), form);
    case job::Metric::kF1:
      return BinaryCounts(metric.f1().threshold(), form);
    case job::Metric::kRSquared:
      return RSquared();
    default:
      break;
  }
  ExampleScore score = ExampleScoreOf(metric, loss);
  CHECK(score != nullptr) << NameOf(metric);
  return Mean{.score = std::move(score)};
}

void Metrics::Add(const Batch& batch, absl::Span<const float> outputs) {
  CHECK_EQ(outputs.size(), static_cast<size_t>(batch.size * width_));
  int64_t first = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    const LossSpec& loss = part.output.loss;
    const Target* const target =
        part.output.is_named() ? &batch.targets[i] : nullptr;
    const absl::Span<const float> labels =
        target != nullptr ? target->labels : batch.labels;
    CHECK_EQ(labels.size(), static_cast<size_t>(batch.size * loss.label.width));
    for (int64_t j = 0; j < batch.size; ++j) {
      if (target != nullptr && target->weights[j] == 0) continue;
      AddExample(outputs.subspan(j * width_ + first, loss.outputs),
                 labels.subspan(j * loss.label.width, loss.label.width),
                 batch.weights.empty() ? 1 : batch.weights[j], part);
    }
    first += loss.outputs;
  }
}

void Metrics::AddExample(absl::Span<const float> outputs,
                         absl::Span<const float> labels, double weight,
                         Part& part) {
  for (Entry& entry : part.entries) {
    std::visit(
        Overloaded{
            [&](Mean& mean) {
              mean.sum += weight * mean.score(outputs, labels);
            },
            [&](Auc& auc) { auc.Add(outputs[0], labels[0] > 0.5f, weight); },
            [&](BinaryCounts& counts) { counts.Add(outputs, labels, weight); },
            [&](RSquared& r) {
              r.Add(PredictionOf(outputs[0], part.output.loss), labels[0],
                    weight);
            }},
        entry.sums);
  }
  part.weight_sum += weight;
}

void Metrics::Merge(const Metrics& other) {
  CHECK_EQ(parts_.size(), other.parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    const Part& from = other.parts_[i];
    CHECK_EQ(part.entries.size(), from.entries.size());
    for (size_t j = 0; j < part.entries.size(); ++j) {
      const Sums& added = from.entries[j].sums;
      std::visit(
          Overloaded{[&](Mean& mean) { mean.sum += std::get<Mean>(added).sum; },
                     [&]<typename Other>(Other& sums) {
                       sums.Merge(std::get<Other>(added));
                     }},
          part.entries[j].sums);
    }
    part.weight_sum += from.weight_sum;
  }
}

MetricResults Metrics::Results() const {
  MetricResults results;
  for (const Part& part : parts_) {
    for (const Entry& entry : part.entries) {
      results.emplace_back(ResultName(part.output, NameOf(entry.metric)),
                           ResultOf(part, entry));
    }
  }
  return results;
}

double Metrics::ResultOf(const Part& part, const Entry& entry) {
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
  if (!(part.weight_sum > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double mean = std::get<Mean>(entry.sums).sum / part.weight_sum;
  return entry.metric.has_root_mean_squared_error() ? std::sqrt(mean) : mean;
}

}  // namespace parasol
