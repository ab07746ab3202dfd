#ifndef PARASOL_ML_INPUT_RECORD_LINE_FORMAT_H_
#define PARASOL_ML_INPUT_RECORD_LINE_FORMAT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "ml/input/record/record_format.h"

namespace parasol {

// Lines without the blanks at their ends, but for empty ones and those that
// begin with `comment`. A file's byte order mark is left out.
class LineFormat final : public RecordFormat {
 public:
  explicit LineFormat(char comment) : comment_(comment) {}

  absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                              const FilePart& part) override;
  FoundRecord Find(const FilePart& part, size_t at) const override;

 private:
  const char comment_;
};

// Returns the line without blanks at its ends and without a CR.
absl::string_view Trimmed(absl::string_view line);

// Returns where a text begins behind its byte order mark, if it has one.
size_t BehindByteOrderMark(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_LINE_FORMAT_H_
