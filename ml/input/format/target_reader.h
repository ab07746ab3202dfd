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

// Makes the labels of a model's named outputs of an example's columns.
// Thread-safe.
class TargetReader {
 public:
  // Appends to `columns`, the names of the columns that the caller puts into a
  // ColumnValues, those that the targets read beside them.
  TargetReader(const std::vector<TargetInput>& targets,
               std::vector<std::string>& columns);

  // Appends the example's label for each target, and whether it counts: it has
  // a label, and a mask that is not 0.
  //   DataLoss  a label or a mask can't be read: names the output. The batch
  //             then has a part of the example.
  absl::Status Append(const ColumnValues& row, Batch& batch) const;

 private:
  struct Entry {
    TargetInput spec;
    LabelRule rule;
    size_t label = 0;  // a place in the ColumnValues
    std::optional<size_t> mask = std::nullopt;
  };

  static absl::Status AppendOne(const Entry& entry, const ColumnValues& row,
                                Target& target);

  std::vector<Entry> entries_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_TARGET_READER_H_
