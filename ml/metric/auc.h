#ifndef PARASOL_ML_METRIC_AUC_H_
#define PARASOL_ML_METRIC_AUC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parasol {

// Areas under two curves of one output's scores. Value() is that under the ROC
// curve: the probability that a positive example has a
// higher score than a negative one, both drawn by their weights. Equal scores
// count half.
//
// Keeps the weights of up to `max_scores` (at least 4) scores, 24 bytes each.
// The result is exact for fewer than half as many scores. When there are more
// than `max_scores`, the lowest bits of all scores are dropped until at most
// half as many scores remain. Scores that agree in the remaining bits count as
// equal, so the error is at most half the share of the pairs of a positive and
// a negative example whose scores become equal. A million examples with half a
// million different scores keep about 2^-15 of a score's value. Adding and
// merging in any order gives the same result but for the rounding of sums.
class Auc {
 public:
  explicit Auc(size_t max_scores = size_t{1} << 20);

  void Add(float score, bool positive, double weight);
  // Adds all of `other`'s examples.
  void Merge(const Auc& other);

  // Returns the area. NaN if there is no pair, that is no positive or no
  // negative example of a weight above 0, or if a score was NaN.
  double Value() const;

  // Returns the average precision: the mean over the positive examples, by
  // their weights, of the share of positive ones among all examples whose score
  // is at least the example's. It is the area under the curve of precision over
  // recall in steps, as of scikit-learn's average_precision_score. NaN without
  // a positive example of a weight above 0, or if a score was NaN.
  double AveragePrecision() const;

 private:
  // Sums of the weights of all examples of one score.
  struct Score {
    // The score's bits, changed so that they compare like the scores.
    uint32_t order;
    double positive;  // weight
    double negative;
  };

  static void Combine(std::vector<Score>& scores);
  void DropBits(int bits);
  void Shrink();

  size_t max_scores_;
  int dropped_bits_ = 0;
  bool has_nan_ = false;
  // Scores with weights. Several elements may have the same `order`.
  std::vector<Score> scores_;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_AUC_H_
