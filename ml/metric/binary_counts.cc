#include "ml/metric/binary_counts.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "base/log.h"

namespace parasol {

BinaryCounts::BinaryCounts(double threshold, Outputs outputs)
    : least_(static_cast<float>(outputs == Outputs::kLogits
                                    ? std::log(threshold / (1 - threshold))
                                    : threshold)) {
  CHECK_GT(threshold, 0);
  CHECK_LT(threshold, 1);
}

void BinaryCounts::Add(absl::Span<const float> outputs,
                       absl::Span<const float> labels, double weight) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    // A sum that is NaN stays so.
    weight_ += std::isnan(outputs[i]) ? std::numeric_limits<double>::quiet_NaN()
                                      : weight;
    const bool predicted = outputs[i] > least_;
    const bool positive = labels[i] > 0.5f;
    if (predicted && positive) true_positives_ += weight;
    if (predicted && !positive) false_positives_ += weight;
    if (!predicted && positive) false_negatives_ += weight;
  }
}

void BinaryCounts::Merge(const BinaryCounts& other) {
  CHECK_EQ(least_, other.least_);
  true_positives_ += other.true_positives_;
  false_positives_ += other.false_positives_;
  false_negatives_ += other.false_negatives_;
  weight_ += other.weight_;
}

double BinaryCounts::Precision() const {
  return Quotient(true_positives_ + false_positives_);
}

double BinaryCounts::Recall() const {
  return Quotient(true_positives_ + false_negatives_);
}

double BinaryCounts::F1() const {
  return Quotient(true_positives_ + (false_positives_ + false_negatives_) / 2);
}

double BinaryCounts::Quotient(double divisor) const {
  if (!(weight_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  return divisor > 0 ? true_positives_ / divisor : 0;
}

}  // namespace parasol
