#ifndef PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_
#define PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Number of first bytes of a file by which formats are told apart.
inline constexpr size_t kKnownFormatBytes = 512;

// Returns what a file that begins with `start` is, and what to do with it, if
// it is of a format that no data set has: "is a zip archive; unpack it". "" if
// it may be a data set's. `is_text`: of a data set of lines, which has other
// beginnings than binary ones. Pure.
std::string KnownFormat(absl::string_view start, bool is_text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_
