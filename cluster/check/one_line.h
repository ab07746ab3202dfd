#ifndef PARASOL_CLUSTER_CHECK_ONE_LINE_H_
#define PARASOL_CLUSTER_CHECK_ONE_LINE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns a message as one line that a terminal can show: control characters
// and what is no UTF-8 escaped, the rest, quotes too, as it is. Pure.
std::string OneLine(absl::string_view message);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_ONE_LINE_H_
