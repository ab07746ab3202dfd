#ifndef PARASOL_ML_INPUT_FORMAT_LINE_RECORDS_H_
#define PARASOL_ML_INPUT_FORMAT_LINE_RECORDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/records.h"

namespace parasol {

// Returns the line without blanks at its ends and without a CR.
absl::string_view Trimmed(absl::string_view line);

// Returns the lines of the files except empty ones and those that begin with
// `comment`. A file's byte order mark is left out. Errors as for
// DataFiles::ReadNext().
absl::StatusOr<Records> ReadLines(DataFiles files, char comment);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_LINE_RECORDS_H_
