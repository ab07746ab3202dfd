#ifndef PARASOL_ML_INPUT_FORMAT_PARQUET_SET_H_
#define PARASOL_ML_INPUT_FORMAT_PARQUET_SET_H_

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

// Opens files of Parquet or Arrow IPC, of which the columns that are read
// become records (ml/input/arrow/arrow_records.h). An example has the values of
// its row; a null is missing, and so is a list that is null or empty.
//   FailedPrecondition     Apache Arrow is not installed: says what to do.
//   InvalidArgument        the label, the weight or an input names a column
//                          that does not exist, or one that can't be read; the
//                          files' columns differ; there is no room for
//                          records.
//   NotFound, DataLoss, …  as for FindFiles() and ArrowFile; a damaged row
//                          group, unless corrupt records are skipped.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenParquetSet(
    const job::ParquetDataset& parquet, const SetOptions& options);

// Returns the columns of the first file, those that can't be read, too.
//   any  as for OpenParquetSet(), for that file.
absl::StatusOr<Columns> ReadParquetColumns(const job::ParquetDataset& parquet,
                                           const std::string& data_dir);

// Opens the same files as they are. Of the `wanted` columns, as far as the
// first file has them, the values are read, and of its others, without those
// that can't be read, only the names are known; if `wanted` is empty all are
// read that the files have alike. `sample_bytes` as in RawColumns::Open().
absl::StatusOr<std::unique_ptr<RawColumns>> OpenParquetColumns(
    const job::ParquetDataset& parquet, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_PARQUET_SET_H_
