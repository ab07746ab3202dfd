#ifndef PARASOL_ML_METRIC_RANKED_GROUPS_H_
#define PARASOL_ML_METRIC_RANKED_GROUPS_H_

#include <cstdint>
#include <vector>

namespace parasol {

// Metrics of how a score ranks the examples of each group. Keeps all examples,
// 24 bytes each, and a copy of them while a result is computed. Adding and
// merging in any order gives the same bits. Equal scores have no order: a
// result is the mean over all orders of them. Each result is NaN if no group
// counts for it, or if a score was NaN.
class RankedGroups {
 public:
  // Adds an example, unless its weight is 0. `group` is equal for examples of
  // one group. A label above .5 is positive.
  void Add(uint64_t group, float score, float label, double weight);
  // Adds all of `other`'s examples.
  void Merge(const RankedGroups& other);

  // Returns the mean of the groups' areas under the ROC curve (Auc), in which a
  // group counts by the sum of its examples' weights. Groups count that have
  // positive and negative examples.
  double MeanAuc() const;

  // Returns the mean of the groups' normalized discounted cumulative gains
  // (Järvelin and Kekäläinen, 2002): the sum over the k examples with the
  // largest scores of weight · (2^label - 1) / log2(1 + place), places counted
  // from 1, over the largest such sum that any order of the group has. Groups
  // count in which the latter is above 0, each once.
  double MeanNdcg(int64_t k) const;

  // Returns the mean of the groups' recalls: the share, by weight, of the
  // group's positive examples that are among the k with the largest scores.
  // Groups count that have a positive example, each once.
  double MeanRecall(int64_t k) const;

 private:
  struct Example {
    uint64_t group;
    float score;
    float label;
    double weight;
  };
  // Calls visit(begin, end) for the examples of each group, the largest score
  // first.
  template <typename Visit>
  void ForEachGroup(Visit visit) const;

  std::vector<Example> examples_;
  bool has_nan_ = false;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_RANKED_GROUPS_H_
