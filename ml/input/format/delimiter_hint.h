#ifndef PARASOL_ML_INPUT_FORMAT_DELIMITER_HINT_H_
#define PARASOL_ML_INPUT_FORMAT_DELIMITER_HINT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns the end of an error about a column `name` that is not among a CSV
// file's `columns`, if the header was split at the wrong text: which delimiter
// is meant. "" if it was not. Pure.
std::string DelimiterHint(absl::string_view name,
                          const std::vector<std::string>& columns);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_DELIMITER_HINT_H_
