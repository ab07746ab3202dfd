#ifndef PARASOL_ML_INPUT_FILE_OPEN_ERROR_H_
#define PARASOL_ML_INPUT_FILE_OPEN_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace parasol {

// Returns the error of a file that can't be opened, by its errno; names it.
//   Unavailable  it may pass: a disk or a server that refuses, no descriptor
//                left (says what to do).
//   any other    as absl::ErrnoToStatus() has it: NotFound, PermissionDenied, …
absl::Status OpenError(const std::string& path, int error);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_OPEN_ERROR_H_
