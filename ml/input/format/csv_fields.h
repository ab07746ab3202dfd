#ifndef PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// Lines of values between delimiters of one or more characters, quoted as in
// RFC 4180:
//
//   record = value *(delimiter value) (LF | CRLF | end of file)
//   value  = text | blank* DQUOTE *(any | DQUOTE DQUOTE) DQUOTE blank*
//
// Blanks, that is spaces and tabs that are not the delimiter, are dropped
// around both kinds of value. A quote inside a text stands for itself.

// Most bytes of a value in quotes.
inline constexpr size_t kMaxCsvQuotedBytes = 1 << 20;

// The end of a record.
struct CsvRecordEnd {
  enum class Kind {
    kWhole,
    // A quoted value does not end within kMaxCsvQuotedBytes, or text follows
    // its quote: the record cannot be parsed, and the next one begins on the
    // next line.
    kBroken,
    kCutOff,  // only what follows the text can tell
  };
  Kind kind = Kind::kWhole;
  size_t size = 0;  // bytes before the LF, or the end of the file, that ends it
};

// Returns the end of the record that `text` begins with: for a whole one, the
// first LF that is not inside quotes. `goes_on`: the file has more bytes than
// the text. Pure.
CsvRecordEnd EndOfCsvRecord(absl::string_view text, absl::string_view delimiter,
                            bool goes_on = false);

// Splits records into values; its memory is used again.
class CsvFields {
 public:
  explicit CsvFields(absl::string_view delimiter) : delimiter_(delimiter) {}

  // Returns the values of `record` (which has no line end), valid until the
  // next call and as long as `record` is. Stops once there are more than
  // `max_values`. Returns null if the quotes are wrong, as above.
  const std::vector<absl::string_view>* Split(absl::string_view record,
                                              size_t max_values);

 private:
  // Splits a record without quotes at a delimiter of one character.
  void SplitUnquoted(absl::string_view record, size_t max_values);
  // Takes the quoted value that begins at `at`, and moves `at` behind it.
  bool TakeQuoted(absl::string_view record, size_t& at);

  const std::string delimiter_;
  std::vector<absl::string_view> values_;
  std::string unquoted_;  // values in which a quote was doubled
};

// Returns the end of an error about a column `name` that is not among a CSV
// file's `columns`, if the header was split at the wrong text: which delimiter
// is meant. "" if it was not. Pure.
std::string DelimiterHint(absl::string_view name,
                          const std::vector<std::string>& columns);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_
