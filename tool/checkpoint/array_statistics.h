#ifndef PARASOL_TOOL_CHECKPOINT_ARRAY_STATISTICS_H_
#define PARASOL_TOOL_CHECKPOINT_ARRAY_STATISTICS_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"

namespace parasol {

// Statistics of float32 elements that come in pieces. What is not finite is
// counted, and is in no other number but `elements`.
class ArrayStatistics {
 public:
  void Add(absl::Span<const float> values);

  int64_t elements() const { return finite_ + nans_ + infinities_; }
  int64_t zeros() const { return zeros_; }
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  // Return NaN if no element is finite.
  double min() const { return finite_ > 0 ? min_ : kNone; }
  double max() const { return finite_ > 0 ? max_ : kNone; }
  double mean() const { return finite_ > 0 ? mean_ : kNone; }
  // Returns the standard deviation, of these elements and not of a sample.
  double deviation() const;

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  void AddFinite(float value);

  int64_t finite_ = 0;
  int64_t zeros_ = 0;
  int64_t nans_ = 0;
  int64_t infinities_ = 0;
  double min_ = 0;
  double max_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of squared distances from the mean
};

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_ARRAY_STATISTICS_H_
