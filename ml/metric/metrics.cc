#include "ml/metric/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

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
  std::vector<ExampleColumn> columns = LossColumns(outputs);
  AddMetricColumns(model, columns);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Part& part = metrics.parts_.emplace_back();
    part.output = outputs[i];
    metrics.width_ += outputs[i].loss.outputs;
    for (job::Metric& metric : resolved[i]) {
      ASSIGN_OR_RETURN(Sums sums, SumsOf(metric, outputs[i].loss));
      const size_t group =
          std::find(columns.begin(), columns.end(), GroupColumnOf(metric)) -
          columns.begin();
      part.entries.push_back({std::move(metric), std::move(sums), group});
    }
  }
  return metrics;
}

absl::StatusOr<Metrics::Sums> Metrics::SumsOf(const job::Metric& metric,
                                              const LossSpec& loss) {
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
    case job::Metric::kGroupAuc:
    case job::Metric::kNdcg:
    case job::Metric::kRecallAtK:
      return RankedGroups();
    case job::Metric::kCalibration: {
      job::Metric prediction, label;
      prediction.mutable_mean_prediction();
      label.mutable_mean_label();
      return Quotient{.prediction = {.score = ExampleScoreOf(prediction, loss)},
                      .label = {.score = ExampleScoreOf(label, loss)}};
    }
    case job::Metric::kCustom: {
      ASSIGN_OR_RETURN(std::unique_ptr<CustomMetric> made,
                       MakeCustomMetric(metric.custom(), loss));
      return CustomSums(std::move(made));
    }
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
      AddExample(
          {.batch = batch,
           .number = j,
           .outputs = outputs.subspan(j * width_ + first, loss.outputs),
           .labels = labels.subspan(j * loss.label.width, loss.label.width),
           .weight = batch.weights.empty() ? 1 : batch.weights[j]},
          part);
    }
    first += loss.outputs;
  }
}

uint64_t Metrics::GroupOf(const Example& example, size_t column) {
  CHECK_LT(column, example.batch.columns.size());
  return example.batch.columns[column].keys[example.number];
}

void Metrics::AddExample(const Example& example, Part& part) {
  const auto add = [&example](Mean& mean) {
    mean.sum += example.weight * mean.score(example.outputs, example.labels);
  };
  for (Entry& entry : part.entries) {
    std::visit(
        Overloaded{
            add,
            [&](Quotient& quotient) {
              add(quotient.prediction);
              add(quotient.label);
            },
            [&](Auc& auc) {
              auc.Add(example.outputs[0], example.labels[0] > 0.5f,
                      example.weight);
            },
            [&](BinaryCounts& counts) {
              counts.Add(example.outputs, example.labels, example.weight);
            },
            [&](CustomSums& sums) {
              sums.Add(example.outputs, example.labels, example.weight);
            },
            [&](RSquared& r) {
              r.Add(PredictionOf(example.outputs[0], part.output.loss),
                    example.labels[0], example.weight);
            },
            [&](RankedGroups& groups) {
              groups.Add(GroupOf(example, entry.group), example.outputs[0],
                         example.labels[0], example.weight);
            }},
        entry.sums);
  }
  part.weight_sum += example.weight;
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
                     [&](Quotient& quotient) {
                       const Quotient& other = std::get<Quotient>(added);
                       quotient.prediction.sum += other.prediction.sum;
                       quotient.label.sum += other.label.sum;
                     },
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
    case job::Metric::kGroupAuc:
      return std::get<RankedGroups>(entry.sums).MeanAuc();
    case job::Metric::kNdcg:
      return std::get<RankedGroups>(entry.sums)
          .MeanNdcg(entry.metric.ndcg().k());
    case job::Metric::kRecallAtK:
      return std::get<RankedGroups>(entry.sums)
          .MeanRecall(entry.metric.recall_at_k().k());
    case job::Metric::kCalibration: {
      const Quotient& quotient = std::get<Quotient>(entry.sums);
      if (quotient.label.sum == 0) return kNoValue;
      return quotient.prediction.sum / quotient.label.sum;
    }
    case job::Metric::kCustom:
      return std::get<CustomSums>(entry.sums).Value();
    default:
      break;
  }
  if (!(part.weight_sum > 0)) return kNoValue;
  const double mean = std::get<Mean>(entry.sums).sum / part.weight_sum;
  return entry.metric.has_root_mean_squared_error() ? std::sqrt(mean) : mean;
}

}  // namespace parasol
