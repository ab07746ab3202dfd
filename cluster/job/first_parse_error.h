#ifndef PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_
#define PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_

#include <string>

#include "google/protobuf/io/tokenizer.h"

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

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_
