#ifndef PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_
#define PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_

#include <string>

#include "google/protobuf/io/tokenizer.h"

namespace parasol {

// Keeps the first error of a text-format parser, which goes on after it and
// then reports what merely follows from it.
class FirstParseError : public google::protobuf::io::ErrorCollector {
 public:
  // From 0; -1 where the parser knows no position.
  int line() const { return line_; }
  int column() const { return column_; }
  // One line of printable ASCII; empty: no error.
  const std::string& message() const { return message_; }

  void AddError(int line, int column, const std::string& message) override;

 private:
  int line_ = -1;
  int column_ = -1;
  std::string message_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_FIRST_PARSE_ERROR_H_
