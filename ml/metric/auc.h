#ifndef PARASOL_ML_METRIC_AUC_H_
#define PARASOL_ML_METRIC_AUC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parasol {

// The area under the ROC curve: the probability that a positive example has a
// higher score than a negative one, both drawn by their weights; equal scores
// count half.
//
// Keeps the weights of up to `max_scores` (4 and more) scores, 24 bytes each.
// Below half as many it is exact. When there are more, the lowest bits of all
// scores are dropped until there are at most half as many, and scores that
// agree in the rest are equal: the error is at most half the share of pairs of
// a positive and a negative example that this makes equal. A million examples
// with half a million different scores keep about 2^-15 of a score's value.
// Adding and merging in any order gives the same but for the rounding of sums.
class Auc {
 public:
  explicit Auc(size_t max_scores = size_t{1} << 20);

  void Add(float score, bool positive, double weight);
  // As if all of `other`'s examples had been added here.
  void Merge(const Auc& other);

  // NaN where there is no pair: without positive or without negative examples
  // (of a weight above 0); and when a score was NaN.
  double Value() const;

 private:
  // All examples of one score.
  struct Score {
    // The score's bits, so that they compare like the scores.
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
  // One `order` may be there several times.
  std::vector<Score> scores_;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_AUC_H_
