#ifndef PARASOL_ML_METRIC_BINARY_COUNTS_H_
#define PARASOL_ML_METRIC_BINARY_COUNTS_H_

#include "absl/types/span.h"

namespace parasol {

// Sums of the weights of right and wrong predictions of "positive" and
// "negative", of which precision, recall and F1 are quotients. Each output of
// an example counts on its own. Formulas and the value 0 without a divisor are
// Keras's.
class BinaryCounts {
 public:
  // The form of outputs.
  enum class Outputs { kLogits, kProbabilities };

  // An output is predicted to be positive if its probability, the sigmoid of a
  // logit, is above `threshold`, in (0, 1).
  explicit BinaryCounts(double threshold, Outputs outputs = Outputs::kLogits);

  // Adds the outputs of one example. A label above .5 is positive.
  void Add(absl::Span<const float> outputs, absl::Span<const float> labels,
           double weight);
  // Adds all examples of `other`, whose threshold is the same.
  void Merge(const BinaryCounts& other);

  // Each is NaN without examples of a weight above 0, or if an output was NaN.
  // Share of the positive predictions that are right; 0 without any.
  double Precision() const;
  // Share of the positive examples that are predicted; 0 without any.
  double Recall() const;
  // Harmonic mean of both; 0 if both are 0.
  double F1() const;

 private:
  double Quotient(double divisor) const;

  float least_;  // an output above it is positive
  double true_positives_ = 0;
  double false_positives_ = 0;
  double false_negatives_ = 0;
  double weight_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_BINARY_COUNTS_H_
