#ifndef PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_
#define PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_

#include <cstddef>
#include <optional>
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
// Blanks, spaces and tabs that are not the delimiter, are dropped around both.
// A quote inside a text is that character.

// Where the LF, or the end of the file, is that ends the record that begins at
// `start`: the next one, unless it is inside quotes. nullopt: a quoted value
// does not end within 1 MiB, or there is text behind its quote. Then nothing
// can be made of this line, and the next record begins behind it.
std::optional<size_t> EndOfCsvRecord(absl::string_view file, size_t start,
                                     absl::string_view delimiter);

// Takes records apart; its memory is used again.
class CsvFields {
 public:
  explicit CsvFields(absl::string_view delimiter) : delimiter_(delimiter) {}

  // The values of a record (without its line end), valid until the next call
  // and as long as the record is. Stops behind `max_values`. Null: quotes are
  // wrong, as above.
  const std::vector<absl::string_view>* Split(absl::string_view record,
                                              size_t max_values);

 private:
  // Takes the quoted value that begins at `at`, and moves it to what is behind.
  bool TakeQuoted(absl::string_view record, size_t& at);

  const std::string delimiter_;
  std::vector<absl::string_view> values_;
  std::string unquoted_;  // values in which a quote was doubled
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CSV_FIELDS_H_
