#ifndef PARASOL_ML_INPUT_FORMAT_CSV_INDEX_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_INDEX_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/records.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns a value of a file for an error: its beginning, in quotes.
std::string QuotedValue(absl::string_view text);

// Returns what stands between the values.
std::string CsvDelimiter(const job::CsvDataset& csv);

// Reads the files of a data set of lines and finds their records and headers.
class CsvIndexer {
 public:
  explicit CsvIndexer(const job::CsvDataset& csv);

  // Reads the next file. Quotes that do not end make broken records.
  //   InvalidArgument  the header is no list of columns, or another one than
  //                    those of the files before it.
  //   any other        as for ReadWholeFile().
  absl::Status Add(const std::string& path);

  // Takes `bytes` for those of the file at `path`.
  absl::Status AddText(const std::string& path, std::string bytes);

  // Returns the names of the columns: those of the header, or of the job.
  const std::vector<std::string>& columns() const { return columns_; }
  const Records& records() const { return records_; }
  Records TakeRecords() { return std::move(records_); }

 private:
  absl::Status TakeHeader(const std::string& path, absl::string_view header);

  const std::string delimiter_;
  const int skip_lines_;
  const bool has_header_;
  std::vector<std::string> columns_;
  std::string blanks_;  // the characters of a blank line
  Records records_{Records::Content::kText};
  absl::string_view text_;  // text of the file that is being read
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_INDEX_H_
