#ifndef PARASOL_ML_INPUT_FORMAT_ARRAY_SET_H_
#define PARASOL_ML_INPUT_FORMAT_ARRAY_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/raw_columns.h"
#include "proto/job.pb.h"

namespace parasol {

// Data sets in NumPy's arrays. The columns are the arrays with as many examples
// as the label's; without a label, as the first one that the model names. A
// model's dense input must have as many numbers as its columns' examples.
//
// All three functions fail with
//   NotFound         a file is missing.
//   DataLoss         a file is damaged, also if corrupt records are skipped.
//   InvalidArgument  an array that is read is none that can be, or has another
//                    number of examples, or an input does not fit its arrays.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenArraySet(
    const job::ArrayDataset& dataset, const SetOptions& options);

// Returns the columns, and reads no more of the files than their headers.
absl::StatusOr<Columns> ReadArrayColumns(const job::ArrayDataset& dataset,
                                         const std::string& data_dir);

// Opens the files as they are. `wanted`: the columns that are read, the label's
// first; they must be there with the same number of examples if they are there.
absl::StatusOr<std::unique_ptr<RawColumns>> OpenArrayColumns(
    const job::ArrayDataset& dataset, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_ARRAY_SET_H_
