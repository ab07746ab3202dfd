#ifndef PARASOL_CLUSTER_INSPECTION_CUT_TEXT_H_
#define PARASOL_CLUSTER_INSPECTION_CUT_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns a text of several lines, cut to `most` bytes, at least 16; one that
// was cut ends by a line that says so. Bytes that are no ASCII that can be
// printed, nor the end of a line, become "?": names of functions and files may
// be no UTF-8, which protobuf refuses. Pure.
std::string CutText(absl::string_view text, size_t most);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_INSPECTION_CUT_TEXT_H_
