#ifndef PARASOL_ML_METRIC_R_SQUARED_H_
#define PARASOL_ML_METRIC_R_SQUARED_H_

namespace parasol {

// The coefficient of determination: 1 - (sum of squared errors) / (sum of
// squared deviations of the labels from their mean). Deviations are added up
// beside a running mean (Chan et al., 1979), which loses no digits to labels
// far from 0.
class RSquared {
 public:
  void Add(double prediction, double label, double weight);
  // Adds all examples of `other`.
  void Merge(const RSquared& other);

  // Returns the coefficient. NaN without examples of a weight above 0, or if
  // all labels are equal.
  double Value() const;

 private:
  double weight_ = 0;
  double mean_ = 0;        // labels' mean
  double deviations_ = 0;  // weighted squares
  double errors_ = 0;      // weighted squares
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_R_SQUARED_H_
