#ifndef PARASOL_ML_INPUT_FORMAT_CSV_INDEX_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_INDEX_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/records.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns a value of a file for an error: its beginning, in quotes.
std::string QuotedValue(absl::string_view text);

// Returns what stands between the values.
std::string CsvDelimiter(const job::CsvDataset& csv);

// Finds the records and headers of a data set of lines.
class CsvIndexer {
 public:
  explicit CsvIndexer(const job::CsvDataset& csv);

  // Takes the next file. Quotes that do not end make broken records. Of a file
  // that is cut off only whole records are taken.
  //   InvalidArgument  the header is no list of columns, or differs from the
  //                    header of the files before it.
  absl::Status Add(DataFile file);

  // Notes that the files have more than was added.
  void MarkSample() { records_.MarkSample(); }

  // Returns the names of the columns, from the header or the job.
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
