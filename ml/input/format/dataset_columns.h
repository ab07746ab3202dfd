#ifndef PARASOL_ML_INPUT_FORMAT_DATASET_COLUMNS_H_
#define PARASOL_ML_INPUT_FORMAT_DATASET_COLUMNS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ml/input/feature/column_features.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the columns of `dataset` in their order if the job itself says what
// they are: criteo, ratings, csv with a list of columns. nullopt: the files do.
std::optional<Columns> ListedColumns(const job::Dataset& dataset);

// Returns the same of any data set with named columns. Reads no more of its
// files, whose paths are relative to `data_dir`, than it takes: the first
// file's header or schema, all headers of arrays, or the first 1,000 records of
// a TFRecord, whose features have the order of their names. A data source of
// the user's is opened.
//   InvalidArgument      the records have no named columns, or a header is no
//                        list of columns.
//   FailedPrecondition   this program lacks the data source's code, or Arrow.
//   NotFound, DataLoss…  as for FindFiles() and InputFile.
absl::StatusOr<Columns> ReadColumns(const job::Dataset& dataset,
                                    const std::string& data_dir);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_DATASET_COLUMNS_H_
