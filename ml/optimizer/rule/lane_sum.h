#ifndef PARASOL_ML_OPTIMIZER_RULE_LANE_SUM_H_
#define PARASOL_ML_OPTIMIZER_RULE_LANE_SUM_H_

#include <cstdint>

#include "ml/optimizer/rule/clip.h"

namespace parasol {

// A sum in the order of rule/clip.h, term by term.
class LaneSum {
 public:
  void Add(double term) {
    lanes_[next_] += term;
    next_ = (next_ + 1) % kSumLanes;
  }
  double Total() { return Fold(lanes_); }

  // Returns the sum of kSumLanes lanes, whose contents are lost.
  static double Fold(double* lanes) {
    for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) {
        lanes[lane] += lanes[lane + half];
      }
    }
    return lanes[0];
  }

 private:
  double lanes_[kSumLanes] = {};
  int64_t next_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_LANE_SUM_H_
