#include "ml/metric/metric_spec.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/input/feature/fingerprint.h"
#include "ml/loss/loss_kinds.h"
#include "ml/metric/custom_metric.h"

namespace parasol {
namespace {

using job::Metric;

constexpr double kDefaultThreshold = .5;
constexpr int64_t kDefaultK = 5;
constexpr int64_t kDefaultRankingK = 10;
// Bytes of a custom metric's parameters in its name.
constexpr size_t kMaxParameterBytes = 80;

template <typename... Setters>
std::vector<Metric> MetricsOf(Setters... setters) {
  std::vector<Metric> metrics(sizeof...(setters));
  size_t i = 0;
  ((metrics[i++].*setters)(), ...);
  return metrics;
}

// Scores of pairs have no metric that suits all kinds of labels.
std::vector<Metric> DefaultMetrics(const LossSpec& loss) {
  if (ComparesExamples(loss.loss)) return {};
  // Every program must come to the same list, also one without the code.
  if (loss.loss.has_custom()) return {};
  if (loss.label.kind != LabelForm::Kind::kNumbers) {
    return MetricsOf(&Metric::mutable_accuracy);
  }
  if (!loss.label.is_probability) {
    return MetricsOf(&Metric::mutable_root_mean_squared_error);
  }
  if (loss.outputs > 1) return MetricsOf(&Metric::mutable_accuracy);
  return MetricsOf(&Metric::mutable_accuracy, &Metric::mutable_auc);
}

bool HasMeaning(Metric::KindCase metric, const LabelForm& label) {
  if (label.kind == LabelForm::Kind::kNone) return false;
  const bool numbers = label.kind == LabelForm::Kind::kNumbers;
  switch (metric) {
    case Metric::kAccuracy:
      return !numbers || label.is_probability;
    case Metric::kTopKAccuracy:
      return !numbers;
    case Metric::kLogLoss:
    case Metric::kPrecision:
    case Metric::kRecall:
    case Metric::kF1:
      return numbers && label.is_probability;
    case Metric::kAuc:
    case Metric::kPrAuc:
    case Metric::kRSquared:
    case Metric::kRootMeanSquaredError:
    case Metric::kMeanAbsoluteError:
    case Metric::kMeanPrediction:
    case Metric::kMeanLabel:
    case Metric::kCalibration:
    case Metric::kGroupAuc:
    case Metric::kNdcg:
    case Metric::kRecallAtK:
      return numbers;
    case Metric::kCustom:
    case Metric::KIND_NOT_SET:
      break;
  }
  return false;
}

bool NeedsOneOutput(Metric::KindCase metric) {
  return metric == Metric::kGroupAuc || metric == Metric::kNdcg ||
         metric == Metric::kRecallAtK || metric == Metric::kAuc ||
         metric == Metric::kPrAuc || metric == Metric::kRSquared;
}

const std::string& KindName(const Metric& metric) {
  return Metric::descriptor()->FindFieldByNumber(metric.kind_case())->name();
}

// Returns the threshold's message; null if the metric has none.
const job::Threshold* ThresholdOf(const Metric& metric) {
  switch (metric.kind_case()) {
    case Metric::kPrecision:
      return &metric.precision();
    case Metric::kRecall:
      return &metric.recall();
    case Metric::kF1:
      return &metric.f1();
    default:
      return nullptr;
  }
}

// Returns the message of a metric of groups; null for others.
const job::Ranking* RankingOf(const Metric& metric) {
  switch (metric.kind_case()) {
    case Metric::kGroupAuc:
      return &metric.group_auc();
    case Metric::kNdcg:
      return &metric.ndcg();
    case Metric::kRecallAtK:
      return &metric.recall_at_k();
    default:
      return nullptr;
  }
}

// A text as a part of a result's name, whose marks it has not.
std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        absl::StrContains("_.+-", c)) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string NameOfCustom(const job::Custom& custom) {
  if (custom.parameter().empty()) return custom.type();
  std::vector<std::string> parts;
  Fingerprint fingerprint;
  for (const job::CustomParameter& parameter : custom.parameter()) {
    parts.push_back(absl::StrCat(Escaped(parameter.name()), "=",
                                 Escaped(parameter.value())));
    fingerprint.AddPart(parts.back());
  }
  std::string parameters = absl::StrJoin(parts, ",");
  if (parameters.size() > kMaxParameterBytes) {
    parameters = absl::StrFormat("#%016x", fingerprint.Get());
  }
  return absl::StrCat(custom.type(), "(", parameters, ")");
}

absl::Status CheckRanking(const Metric& metric) {
  const job::Ranking* const ranking = RankingOf(metric);
  if (ranking == nullptr) return absl::OkStatus();
  if (ranking->group().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(KindName(metric),
                     ".group is not set: the column whose equal values are of "
                     "examples that are ranked together"));
  }
  if (metric.has_group_auc() && ranking->has_k()) {
    return absl::InvalidArgumentError(
        absl::StrCat("group_auc.k is ", ranking->k(),
                     ", but it ranks all examples of a group; remove it"));
  }
  if (!metric.has_group_auc() && ranking->k() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        KindName(metric), ".k is ", ranking->k(), ", not at least 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const Metric& metric, const LossSpec& loss) {
  const job::Threshold* const threshold = ThresholdOf(metric);
  if (threshold != nullptr &&
      !(threshold->threshold() > 0 && threshold->threshold() < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(KindName(metric), ".threshold is ", threshold->threshold(),
                     ", not above 0 and below 1"));
  }
  if (metric.has_top_k_accuracy() &&
      !(metric.top_k_accuracy().k() >= 1 &&
        metric.top_k_accuracy().k() < loss.outputs)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k_accuracy.k is ", metric.top_k_accuracy().k(),
        ", not at least 1 and below the number of classes, ", loss.outputs));
  }
  return absl::OkStatus();
}

absl::Status Check(const Metric& metric, const LossSpec& loss) {
  if (metric.kind_case() == Metric::KIND_NOT_SET) {
    return absl::InvalidArgumentError("no metric is chosen");
  }
  if (metric.has_custom()) return CheckCustomMetric(metric.custom(), loss);
  if (loss.label_is_known() && !HasMeaning(metric.kind_case(), loss.label)) {
    return absl::InvalidArgumentError(absl::StrCat(
        KindName(metric), " can't be computed with the loss ", loss.name()));
  }
  if (NeedsOneOutput(metric.kind_case()) && loss.outputs != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        KindName(metric), " needs a model of one output, this one has ",
        loss.outputs));
  }
  RETURN_IF_ERROR(CheckRanking(metric));
  return CheckNumbers(metric, loss);
}

}  // namespace

std::string NameOf(const Metric& metric) {
  if (metric.has_custom()) return NameOfCustom(metric.custom());
  if (metric.has_top_k_accuracy()) {
    return absl::StrCat("top_", metric.top_k_accuracy().k(), "_accuracy");
  }
  if (metric.has_ndcg()) return absl::StrCat("ndcg_at_", metric.ndcg().k());
  if (metric.has_recall_at_k()) {
    return absl::StrCat("recall_at_", metric.recall_at_k().k());
  }
  const job::Threshold* const threshold = ThresholdOf(metric);
  if (threshold == nullptr || threshold->threshold() == kDefaultThreshold) {
    return KindName(metric);
  }
  return absl::StrCat(KindName(metric), "_at_", threshold->threshold());
}

void FillDefaults(Metric& metric) {
  switch (metric.kind_case()) {
    case Metric::kPrecision:
      PARASOL_SET_DEFAULT(*metric.mutable_precision(), threshold,
                          kDefaultThreshold);
      break;
    case Metric::kRecall:
      PARASOL_SET_DEFAULT(*metric.mutable_recall(), threshold,
                          kDefaultThreshold);
      break;
    case Metric::kF1:
      PARASOL_SET_DEFAULT(*metric.mutable_f1(), threshold, kDefaultThreshold);
      break;
    case Metric::kTopKAccuracy:
      PARASOL_SET_DEFAULT(*metric.mutable_top_k_accuracy(), k, kDefaultK);
      break;
    case Metric::kNdcg:
      PARASOL_SET_DEFAULT(*metric.mutable_ndcg(), k, kDefaultRankingK);
      break;
    case Metric::kRecallAtK:
      PARASOL_SET_DEFAULT(*metric.mutable_recall_at_k(), k, kDefaultRankingK);
      break;
    default:
      break;
  }
}

ExampleColumn GroupColumnOf(const Metric& metric) {
  const job::Ranking* const ranking = RankingOf(metric);
  return {.name = ranking == nullptr ? "" : ranking->group(),
          .kind = ExampleColumn::Kind::kKey};
}

void AddMetricColumns(const job::Model& model,
                      std::vector<ExampleColumn>& columns) {
  const auto add = [&columns](const auto& metrics) {
    for (const Metric& metric : metrics) {
      const ExampleColumn column = GroupColumnOf(metric);
      if (column.name.empty()) continue;
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
        columns.push_back(column);
      }
    }
  };
  add(model.metric());
  for (const job::Output& output : model.output()) add(output.metric());
}

absl::StatusOr<std::vector<Metric>> ResolveMetrics(const job::Model& model,
                                                   const LossSpec& loss) {
  return ResolveMetrics(model.metric(), loss);
}

absl::StatusOr<std::vector<Metric>> ResolveMetrics(
    const google::protobuf::RepeatedPtrField<Metric>& wanted,
    const LossSpec& loss) {
  if (wanted.empty()) return DefaultMetrics(loss);
  std::vector<Metric> metrics;
  std::set<std::string> names;
  for (int i = 0; i < wanted.size(); ++i) {
    Metric metric = wanted[i];
    FillDefaults(metric);
    RETURN_IF_ERROR(Check(metric, loss)) << "metric[" << i << "]";
    if (!names.insert(NameOf(metric)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "metric[", i, "]: ", NameOf(metric),
          " appears twice; remove one (results differ by kind, number and "
          "parameters, not by group)"));
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

absl::StatusOr<std::vector<std::vector<Metric>>> ResolveAllMetrics(
    const job::Model& model, absl::Span<const OutputSpec> outputs) {
  std::vector<std::vector<Metric>> all;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_named()) {
      ASSIGN_OR_RETURN(all.emplace_back(),
                       ResolveMetrics(model, outputs[i].loss));
      continue;
    }
    ASSIGN_OR_RETURN(all.emplace_back(),
                     ResolveMetrics(model.output(static_cast<int>(i)).metric(),
                                    outputs[i].loss),
                     _ << "output[" << i << "] \"" << outputs[i].name << "\"");
  }
  return all;
}

std::string ResultName(const OutputSpec& output, absl::string_view metric) {
  return output.is_named() ? absl::StrCat(output.name, "/", metric)
                           : std::string(metric);
}

absl::string_view MetricOf(absl::string_view result) {
  const size_t slash = result.rfind('/');
  return slash == absl::string_view::npos ? result : result.substr(slash + 1);
}

absl::StatusOr<std::vector<std::string>> ResultNames(
    const job::Model& model, absl::Span<const OutputSpec> outputs) {
  ASSIGN_OR_RETURN(const std::vector<std::vector<Metric>> metrics,
                   ResolveAllMetrics(model, outputs));
  std::vector<std::string> names = {"loss"};
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_named()) names.push_back(ResultName(outputs[i], "loss"));
    for (const Metric& metric : metrics[i]) {
      names.push_back(ResultName(outputs[i], NameOf(metric)));
    }
  }
  return names;
}

}  // namespace parasol
