#ifndef PARASOL_ML_INPUT_FORMAT_CSV_FORMAT_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_FORMAT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/record/record_format.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns a value of a file for an error: its beginning, in quotes.
std::string QuotedValue(absl::string_view text);

// Returns what stands between the values.
std::string CsvDelimiter(const job::CsvDataset& csv);

// Records and headers of files of values between delimiters. Quotes that do not
// end make broken records.
class CsvFormat final : public RecordFormat {
 public:
  explicit CsvFormat(const job::CsvDataset& csv);

  // Passes over the lines to skip and the header.
  //   InvalidArgument  the header is no list of columns, or differs from the
  //                    header of the files before it.
  absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                              const FilePart& part) override;
  FoundRecord Find(const FilePart& part, size_t at) const override;

  // Returns the names of the columns, from the header or the job.
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  absl::Status TakeHeader(const std::string& path, absl::string_view header);

  const std::string delimiter_;
  const int skip_lines_;
  const bool has_header_;
  std::vector<std::string> columns_;
  std::string blanks_;  // the characters of a blank line
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_FORMAT_H_
