#ifndef PARASOL_ML_INPUT_FEATURE_DENSE_FEATURE_H_
#define PARASOL_ML_INPUT_FEATURE_DENSE_FEATURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// Makes a dense input from an example's columns. Thread-safe.
class DenseFeatureReader {
 public:
  // Makes a reader of the columns of `dense`, whose shape is set and is a
  // multiple of their number. Column i is row[slots[i]].
  DenseFeatureReader(const job::DenseInput& dense, std::vector<size_t> slots);

  // Checks the columns' default values.
  //   InvalidArgument  a column's default_value is beyond float32 once it is
  //                    transformed: names the column.
  absl::Status CheckDefaults() const;

  // Appends the example's elements to `values`. CheckDefaults() must have
  // returned OK.
  //   DataLoss  a value is not a number, is missing without a default_value, or
  //             there are too many or too few: names the column.
  absl::Status Append(const ColumnValues& row,
                      std::vector<float>& values) const;

 private:
  struct Column {
    job::NumericColumn spec;
    size_t slot;
    double scale;  // 1 / stddev
  };

  float Transformed(const Column& column, double x) const;

  std::vector<Column> columns_;
  size_t values_each_;  // number of values of each column
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_DENSE_FEATURE_H_
