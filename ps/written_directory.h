#ifndef PARASOL_PS_WRITTEN_DIRECTORY_H_
#define PARASOL_PS_WRITTEN_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Returns OK if this process can write files to `path`, a directory, the value
// of the flag --`flag`: makes a file there and removes it. With `make` also
// makes the directory, if it is missing.
//   InvalidArgument  it can't, or `path` is a URI.
absl::Status CheckWrittenDirectory(absl::string_view flag,
                                   const std::string& path, bool make);

}  // namespace parasol

#endif  // PARASOL_PS_WRITTEN_DIRECTORY_H_
