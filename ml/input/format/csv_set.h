#ifndef PARASOL_ML_INPUT_FORMAT_CSV_SET_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/example_set.h"
#include "proto/job.pb.h"

namespace parasol {

// Lines of values between delimiters (csv_fields.h), blank lines left out.
// `format` is what the data set is called in errors: "csv".
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile; quotes that do
//                          not end, unless they are skipped.
//   InvalidArgument        the label, the weight or an input is of a column
//                          that there is not; the files' headers differ.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCsvSet(
    const job::CsvDataset& csv, absl::string_view format,
    const SetOptions& options);

// The same in the words of CSV.
job::CsvDataset CsvOf(const job::CriteoDataset& criteo);
job::CsvDataset CsvOf(const job::RatingsDataset& ratings);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_SET_H_
