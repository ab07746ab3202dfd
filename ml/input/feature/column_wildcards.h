#ifndef PARASOL_ML_INPUT_FEATURE_COLUMN_WILDCARDS_H_
#define PARASOL_ML_INPUT_FEATURE_COLUMN_WILDCARDS_H_

#include <string>

#include "absl/strings/string_view.h"

// Names of columns with wildcards, as a shell's: * any characters, ? one
// character (of UTF-8), [1-9] and [!ab] one ASCII character of a set or of
// none, \ the next character as it is. A [ without its ] stands for itself.
namespace parasol {

// Returns true if `name` has one of * ? [, also behind a \.
bool HasWildcards(absl::string_view name);

// Returns true if all of them are behind a \: `literal` is then the name that
// is meant.
bool IsEscapedName(absl::string_view name, std::string& literal);

// Returns a name that matches `name` alone: with a \ before all that would not
// stand for itself.
std::string EscapedName(absl::string_view name);

// Returns true if all of `name` matches. Takes the product of the lengths at
// most.
bool MatchesWildcards(absl::string_view pattern, absl::string_view name);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_COLUMN_WILDCARDS_H_
