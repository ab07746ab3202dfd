#ifndef PARASOL_ML_INPUT_FORMAT_CSV_SET_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/raw_columns.h"
#include "proto/job.pb.h"

namespace parasol {

// Opens files of lines of values between delimiters (csv_fields.h); blank lines
// are left out. `format` is the data set's name in errors: "csv".
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile; quotes that do
//                          not end, unless corrupt records are skipped.
//   InvalidArgument        the label, the weight or an input names a column
//                          that does not exist; the files' headers differ.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCsvSet(
    const job::CsvDataset& csv, absl::string_view format,
    const SetOptions& options);

// Opens the same files as they are. Records that can't be read are errors of
// RawColumns::Read(). `sample_bytes` as in RawColumns::Open().
absl::StatusOr<std::unique_ptr<RawColumns>> OpenCsvColumns(
    const job::CsvDataset& csv, absl::string_view format,
    const std::string& data_dir, int64_t sample_bytes);

// Returns what is wrong with a name that several of `columns` have; "" if only
// one has it, or none. Pure.
std::string NamedTwice(absl::string_view name,
                       const std::vector<std::string>& columns);

// Returns true if `value` stands for a missing value.
bool IsMissingInCsv(const job::CsvDataset& csv, absl::string_view value);

// Returns the CsvDataset that reads the same files.
job::CsvDataset CsvOf(const job::CriteoDataset& criteo);
job::CsvDataset CsvOf(const job::RatingsDataset& ratings);

// Replaces `values` by the values of a list that is one value of a CSV file:
// the texts between separators, without the spaces and tabs around them, which
// borrow the list's bytes. Where `csv` takes a text for a missing value there
// is FieldValue::Missing(). A list that is missing as a whole has no values.
// Pure.
void SplitCsvList(const job::CsvDataset& csv, absl::string_view separator,
                  absl::string_view list, std::vector<FieldValue>& values);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_SET_H_
