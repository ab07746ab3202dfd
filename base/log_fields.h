#ifndef PARASOL_BASE_LOG_FIELDS_H_
#define PARASOL_BASE_LOG_FIELDS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Fields of a line of the log, which stand in its JSON behind its message:
//
//   LOG(INFO) << "step 5, loss 0.3"
//             << LogFields().AddCount("step", 5).AddNumber("loss", 0.3);
//
// A line of text has its message alone. Names differ from each other and from
// the names in base/log.h.
class LogFields {
 public:
  LogFields& AddCount(absl::string_view name, int64_t value);
  // Adds null for a number that is not finite.
  LogFields& AddNumber(absl::string_view name, double value);
  LogFields& AddText(absl::string_view name, absl::string_view value);

  // Returns `,"step":5,"loss":0.3`; an empty string without fields.
  const std::string& json() const { return json_; }

 private:
  std::string json_;
};

// Writes nothing, and keeps the fields in the stream for LogFieldsIn().
std::ostream& operator<<(std::ostream& stream, const LogFields& fields);

// Returns the JSON of all fields that the stream was given.
std::string LogFieldsIn(std::ostream& stream);

// A line for the log from a function that does not log by itself.
struct LogLine {
  std::string text;
  LogFields fields = {};
};
std::ostream& operator<<(std::ostream& stream, const LogLine& line);
// Returns true if the line's text is `text`.
inline bool operator==(const LogLine& line, absl::string_view text) {
  return line.text == text;
}

// Returns `text` as a JSON string in its quotes. Bytes that are no UTF-8 become
// U+FFFD, as no JSON may have them.
std::string JsonText(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_BASE_LOG_FIELDS_H_
