#ifndef PARASOL_CLUSTER_JOB_SYNTAX_FIRST_PARSE_ERROR_H_
#define PARASOL_CLUSTER_JOB_SYNTAX_FIRST_PARSE_ERROR_H_

#include <optional>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Keeps the first error of a text-format parser. The parser goes on after that
// error and then reports its consequences.
class FirstParseError : public google::protobuf::io::ErrorCollector {
 public:
  // Position of the error, counted from 0; -1 if the parser knows none.
  int line() const { return line_; }
  int column() const { return column_; }
  // The error as one line of printable ASCII; empty if there is no error.
  const std::string& message() const { return message_; }

  void AddError(int line, int column, const std::string& message) override;

 private:
  int line_ = -1;
  int column_ = -1;
  std::string message_;
};

// The first fault of a text that is to be a job.
struct ParseFault {
  int line = 0;  // counts from 0, as the column does
  int column = 0;
  std::string message = {};  // one line
};

// Parses `text` into `job`: a field or a choice twice is a fault. Returns the
// first one, with the values that its field may have if these have names.
std::optional<ParseFault> ParseJobText(const std::string& text, job::Job& job);

// Returns the names of an enum's values for messages: "AUTO, RING, NCCL".
std::string ValueNames(const google::protobuf::EnumDescriptor& values);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_SYNTAX_FIRST_PARSE_ERROR_H_
