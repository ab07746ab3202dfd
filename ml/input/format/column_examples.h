#ifndef PARASOL_ML_INPUT_FORMAT_COLUMN_EXAMPLES_H_
#define PARASOL_ML_INPUT_FORMAT_COLUMN_EXAMPLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/label_rule.h"
#include "ml/input/format/target_reader.h"
#include "proto/job.pb.h"

namespace parasol {

// Makes examples of a set whose columns have values, one label and one weight:
// the part that tf.Examples, Parquet files and users' data sources have in
// common. Thread-safe.
class ColumnExamples {
 public:
  // `has_weights`: the data set has a column of weights. `label`: how the one
  // label is read.
  ColumnExamples(ColumnFeatures features, const SetOptions& options,
                 bool has_weights, const job::CsvLabel& label = {});

  // The columns that Append() takes in `row`, in this order.
  const std::vector<std::string>& columns() const { return columns_; }
  // Returns true if examples have the one label of a model without named
  // outputs.
  bool reads_label() const { return reads_label_; }
  bool reads_weight() const { return reads_weight_; }

  // Appends an example. `label` and `weight` are its values of these columns,
  // and not looked at unless they are read.
  //   DataLoss  a value can't be read: says which. The batch then has a part of
  //             the example.
  absl::Status Append(const ColumnValues& row,
                      const std::vector<FieldValue>& label,
                      const std::vector<FieldValue>& weight,
                      Batch& batch) const;

 private:
  // Appends the texts of the columns that are kept, of several values with
  // blanks between them.
  void AppendKept(const ColumnValues& row, Batch& batch) const;

  const ColumnFeatures features_;
  // Names that features_ and targets_ read, and those that are kept.
  std::vector<std::string> columns_;
  std::vector<size_t> kept_places_;  // places of ModelInputs::kept in columns_
  const TargetReader targets_;
  const ModelInputs inputs_;
  const LabelRule label_rule_;
  const bool without_labels_;
  const bool reads_label_;
  const bool reads_weight_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_COLUMN_EXAMPLES_H_
