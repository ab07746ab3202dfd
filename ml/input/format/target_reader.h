#ifndef PARASOL_ML_INPUT_FORMAT_TARGET_READER_H_
#define PARASOL_ML_INPUT_FORMAT_TARGET_READER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/label_rule.h"

namespace parasol {

// Makes of an example's columns the labels of a model's named outputs, and what
// losses and metrics read beside labels. Thread-safe.
class TargetReader {
 public:
  // Appends to `columns`, the names of the columns that the caller puts into a
  // ColumnValues, those that are read beside them.
  TargetReader(const ModelInputs& inputs, std::vector<std::string>& columns);
  // Reads nothing.
  TargetReader() = default;

  // Appends the example's label for each target, and whether it counts: it has
  // a label, if the loss reads one, and a mask that is not 0. Appends its value
  // of each of ModelInputs::columns.
  //   DataLoss  a label, a mask or a value can't be read: names the output or
  //             the column. The batch then has a part of the example.
  absl::Status Append(const ColumnValues& row, Batch& batch) const;

 private:
  struct Entry {
    TargetInput spec;
    LabelRule rule;
    // Places in the ColumnValues.
    std::optional<size_t> label = std::nullopt;
    std::optional<size_t> mask = std::nullopt;
  };

  struct Column {
    ExampleColumn spec;
    size_t place = 0;
  };

  static absl::Status AppendOne(const Entry& entry, const ColumnValues& row,
                                Target& target);
  static absl::Status AppendValue(const Column& column, const ColumnValues& row,
                                  ExampleValues& values);

  std::vector<Entry> entries_;
  std::vector<Column> columns_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_TARGET_READER_H_
