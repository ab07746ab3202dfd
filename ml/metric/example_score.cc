#include "ml/metric/example_score.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace parasol {
namespace {

using job::Metric;
using Values = absl::Span<const float>;

template <typename Score>
double Mean(Values outputs, Values labels, Score score) {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum += score(outputs[i], labels[i]);
  }
  return sum / outputs.size();
}

// The first one.
size_t Largest(Values values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// NaN compares with nothing: without this there would be a largest output, and
// an accuracy, of a model that has diverged.
bool HasNan(Values values) {
  return std::any_of(values.begin(), values.end(),
                     [](float value) { return std::isnan(value); });
}

double ClassIsRight(Values outputs, Values labels) {
  if (HasNan(outputs)) return kNan;
  return Largest(outputs) == static_cast<size_t>(labels[0]) ? 1 : 0;
}

double LikeliestClassIsRight(Values outputs, Values labels) {
  if (HasNan(outputs)) return kNan;
  return Largest(outputs) == Largest(labels) ? 1 : 0;
}

// Outputs that equal the label's count as below it (tf.math.in_top_k).
double IsAmongLargest(Values outputs, size_t label, int64_t k) {
  if (HasNan(outputs)) return kNan;
  const auto larger =
      std::count_if(outputs.begin(), outputs.end(),
                    [&](float output) { return output > outputs[label]; });
  return larger < k ? 1 : 0;
}

// The output above which label 1 is predicted.
struct HalfOfLogits {
  static constexpr float kOutput = 0;
};
struct HalfOfProbabilities {
  static constexpr float kOutput = .5f;
};

template <typename Half>
double SideIsRight(Values outputs, Values labels) {
  if (HasNan(outputs)) return kNan;
  return Mean(outputs, labels, [](float z, float y) {
    return (z > Half::kOutput) == (y > 0.5f) ? 1 : 0;
  });
}

// max(z, 0) - zy + log(1 + e^-|z|), as the loss, but without smoothing.
double LogLoss(Values outputs, Values labels) {
  return Mean(outputs, labels, [](double z, double y) {
    return std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::fabs(z)));
  });
}

// As the loss, but without smoothing.
double LogLossOfProbabilities(Values outputs, Values labels) {
  static constexpr double kEpsilon = 1e-7;
  if (HasNan(outputs)) return kNan;
  return Mean(outputs, labels, [](double p, double y) {
    const double q = std::clamp(p, kEpsilon, 1 - kEpsilon);
    return -y * std::log(q + kEpsilon) - (1 - y) * std::log(1 - q + kEpsilon);
  });
}

double MeanLabel(Values outputs, Values labels) {
  return Mean(outputs, labels, [](double, double y) { return y; });
}

struct Itself {
  static double Of(double z) { return z; }
};

struct Sigmoid {
  static double Of(double z) {
    const double e = std::exp(-std::fabs(z));
    return (z < 0 ? e : 1) / (1 + e);
  }
};

template <typename Prediction>
struct Predictions {
  static double SquaredError(Values outputs, Values labels) {
    return Mean(outputs, labels, [](double z, double y) {
      return (Prediction::Of(z) - y) * (Prediction::Of(z) - y);
    });
  }
  static double AbsoluteError(Values outputs, Values labels) {
    return Mean(outputs, labels, [](double z, double y) {
      return std::fabs(Prediction::Of(z) - y);
    });
  }
  static double MeanPrediction(Values outputs, Values labels) {
    return Mean(outputs, labels,
                [](double z, double) { return Prediction::Of(z); });
  }
};

template <typename Prediction>
ExampleScore ScoreOfPredictions(Metric::KindCase metric) {
  switch (metric) {
    case Metric::kRootMeanSquaredError:
      return Predictions<Prediction>::SquaredError;
    case Metric::kMeanAbsoluteError:
      return Predictions<Prediction>::AbsoluteError;
    case Metric::kMeanPrediction:
      return Predictions<Prediction>::MeanPrediction;
    case Metric::kMeanLabel:
      return MeanLabel;
    default:
      return nullptr;
  }
}

// True if a prediction is an output's sigmoid.
bool HasLogits(const LossSpec& loss) {
  return loss.label.is_probability && !loss.has_probabilities();
}

}  // namespace

double PredictionOf(float output, const LossSpec& loss) {
  return HasLogits(loss) ? Sigmoid::Of(output) : Itself::Of(output);
}

ExampleScore ExampleScoreOf(const Metric& metric, const LossSpec& loss) {
  const LabelForm& label = loss.label;
  const bool is_class = label.kind == LabelForm::Kind::kClass;
  switch (metric.kind_case()) {
    case Metric::kAccuracy:
      if (is_class) return ClassIsRight;
      if (label.kind == LabelForm::Kind::kOneHot) return LikeliestClassIsRight;
      return loss.has_probabilities() ? SideIsRight<HalfOfProbabilities>
                                      : SideIsRight<HalfOfLogits>;
    case Metric::kTopKAccuracy:
      return [k = metric.top_k_accuracy().k(), is_class](Values outputs,
                                                         Values labels) {
        const size_t label =
            is_class ? static_cast<size_t>(labels[0]) : Largest(labels);
        return IsAmongLargest(outputs, label, k);
      };
    case Metric::kLogLoss:
      return loss.has_probabilities() ? LogLossOfProbabilities : LogLoss;
    default:
      return HasLogits(loss) ? ScoreOfPredictions<Sigmoid>(metric.kind_case())
                             : ScoreOfPredictions<Itself>(metric.kind_case());
  }
}

}  // namespace parasol
