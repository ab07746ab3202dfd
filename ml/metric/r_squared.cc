#include "ml/metric/r_squared.h"

#include <limits>

namespace parasol {

void RSquared::Add(double prediction, double label, double weight) {
  RSquared example;
  example.weight_ = weight;
  example.mean_ = label;
  example.errors_ = weight * (prediction - label) * (prediction - label);
  Merge(example);
}

void RSquared::Merge(const RSquared& other) {
  if (!(other.weight_ > 0)) return;
  const double weight = weight_ + other.weight_;
  const double distance = other.mean_ - mean_;
  deviations_ += other.deviations_ +
                 distance * distance * weight_ * (other.weight_ / weight);
  mean_ += distance * (other.weight_ / weight);
  errors_ += other.errors_;
  weight_ = weight;
}

double RSquared::Value() const {
  if (!(deviations_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  return 1 - errors_ / deviations_;
}

}  // namespace parasol
