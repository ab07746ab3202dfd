#ifndef PARASOL_ML_INPUT_FEATURE_COLUMN_FEATURES_H_
#define PARASOL_ML_INPUT_FEATURE_COLUMN_FEATURES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/dense_feature.h"
#include "ml/input/feature/id_feature.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// The columns of a data set.
struct Columns {
  std::vector<std::string> names;
  // Columns that an input without named columns does not take.
  std::vector<std::string> labels_and_weights;
};

// Returns the column of an input that names none: the one of its name, or else
// the only one that is neither label nor weight.
//   InvalidArgument  there is none, or more than one.
absl::StatusOr<std::string> OwnColumn(const job::ModelInput& input,
                                      const Columns& columns);

// Makes a model's inputs from an example's columns. Thread-safe.
class ColumnFeatures {
 public:
  // Returns the features of `inputs`.
  //   InvalidArgument  an input names a column that does not exist, or names
  //                    none and several would fit, or its shape does not fit
  //                    its columns; or a column is a list to one input, and to
  //                    another none, or one with another separator.
  static absl::StatusOr<ColumnFeatures> Create(
      const std::vector<job::ModelInput>& inputs, const Columns& columns);

  // Names of the columns that the caller puts into a ColumnValues, in this
  // order.
  const std::vector<std::string>& columns() const { return columns_; }
  // Text between the values of each of them where it is a list, one value of
  // the ColumnValues for each; empty where it is no list. Formats whose columns
  // have several values have no use for it.
  const std::vector<std::string>& separators() const { return separators_; }

  // Appends an example without label and weight. After an error the batch has a
  // part of it.
  //   DataLoss  as for DenseFeatureReader and IdFeatureReader.
  absl::Status Append(const ColumnValues& row, Batch& batch) const;

 private:
  absl::Status AddDense(const job::ModelInput& input, const Columns& columns);
  absl::Status AddIds(const job::ModelInput& input, const Columns& columns);
  absl::StatusOr<size_t> IndexOf(const std::string& name,
                                 const job::ModelInput& input,
                                 const Columns& columns);

  std::vector<std::string> columns_;
  std::vector<std::string> separators_;
  std::vector<DenseFeatureReader> dense_;
  std::vector<IdFeatureReader> ids_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_COLUMN_FEATURES_H_
