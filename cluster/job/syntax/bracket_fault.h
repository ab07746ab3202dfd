#ifndef PARASOL_CLUSTER_JOB_SYNTAX_BRACKET_FAULT_H_
#define PARASOL_CLUSTER_JOB_SYNTAX_BRACKET_FAULT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// A bracket or a quote of a job file that has no counterpart.
struct BracketFault {
  int line = 0;    // number of the line, from 0
  int column = 0;  // number of the column, from 0
  std::string message = {};
};

// Returns the first fault of brackets and quotes in a text that can't be
// parsed: a block that is not closed (of several, the one that the lines'
// indentation says), a bracket that closes nothing or another kind, a string
// without its closing quote. nullopt if all of them are right. Pure.
std::optional<BracketFault> FindBracketFault(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_SYNTAX_BRACKET_FAULT_H_
